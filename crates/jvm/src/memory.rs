//! Memory that may not be there.
#![allow(unsafe_code, reason = "a system call that copies memory")]

/// Reads bytes from an address of this process; `None` if the memory is not accessible.
pub fn copy<const N: usize>(address: u64) -> Option<[u8; N]> {
    let mut bytes = [0_u8; N];
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: N };
    // SAFETY: the system copies from accessible memory, and otherwise returns an error.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
    (usize::try_from(copied) == Ok(N)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_copied_and_nothing_else() {
        let word = 0x1234_u64;
        assert_eq!(copy(std::ptr::from_ref(&word) as u64), Some(word.to_ne_bytes()));
        for nowhere in [0, 8, u64::MAX - 7, 1 << 63] {
            assert_eq!(copy::<8>(nowhere), None, "{nowhere:x}");
        }
    }
}
