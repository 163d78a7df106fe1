//! What the allocator does with memory that is freed.

/// Keeps freed blocks of up to 32 MiB in the process for the next allocation, up to 256 MiB of them. Columns of a table are read into blocks of some MiB that
/// are freed after each group of rows: if each went back to the system, half of the time of reading would go to pages that are mapped and
/// cleared again. To be called at the start of a program, before other threads; elsewhere than on glibc it does nothing.
pub fn keep_freed_blocks() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, 32 << 20), (libc::M_TRIM_THRESHOLD, 256 << 20)] {
        #[allow(unsafe_code, reason = "the C library has no other way to say it")]
        // SAFETY: mallopt takes two numbers and keeps them. A value that it refuses changes nothing.
        unsafe {
            libc::mallopt(parameter, bytes);
        }
    }
}
