//! Exceptions that an agent throws and does not catch. Nothing behind its functions could: the VM's code has no tables for unwinding, and Rust
//! ends the process at an exception that is not its own. So each call of the agent goes through a frame that catches what comes.
#![allow(unsafe_code, reason = "a frame whose caller and callee are C's, and which the unwinder is told about")]

use std::ffi::c_void;

/// The agent has left its function by an exception, which is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thrown;

/// Runs `body`, which calls the agent. Propagates panics, and the end of a thread (`pthread_exit`, cancellation).
///
/// # Errors
/// Fails if an exception is thrown: a C++ exception is handled as by `catch (...)`, any other is deleted. On processors
/// other than `x86_64` the process ends instead.
pub fn caught<R, F: FnOnce() -> R>(body: F) -> Result<R, Thrown> {
    let mut call = Call { body: Some(body), result: None };
    // SAFETY: `run` gets the `Call` that it is made for, which lives until it returns or is unwound.
    unsafe { frame::call(run::<R, F>, (&raw mut call).cast()) };
    call.result.ok_or(Thrown)
}

struct Call<R, F> {
    body: Option<F>,
    result: Option<R>,
}

unsafe extern "C-unwind" fn run<R, F: FnOnce() -> R>(call: *mut c_void) {
    // SAFETY: the argument from `caught`.
    let call = unsafe { &mut *call.cast::<Call<R, F>>() };
    call.result = call.body.take().map(|body| body());
}

#[cfg(target_arch = "x86_64")]
mod frame {
    use std::arch::naked_asm;
    use std::cell::Cell;
    use std::ffi::{CStr, c_int, c_void};
    use std::mem::{MaybeUninit, transmute};
    use std::ptr;

    /// Of the unwinder's interface (Itanium C++ ABI: Exception Handling, level I).
    #[repr(C)]
    struct Exception {
        class: u64,
        cleanup: *const c_void,
    }

    thread_local! {
        /// The exception on its way to the landing pad: not passed in the unwinder's context, whose layout of registers
        /// depends on the version of its library.
        static CAUGHT: Cell<*mut Exception> = const { Cell::new(ptr::null_mut()) };
    }

    const SEARCH_PHASE: c_int = 1;
    const HANDLER_FRAME: c_int = 4;
    const FORCED: c_int = 8;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE: c_int = 8;
    /// Rust's own exceptions, in the byte order of one version of its library or the other.
    const PANIC: [u64; 2] = [u64::from_ne_bytes(*b"MOZ\0RUST"), u64::from_be_bytes(*b"MOZ\0RUST")];
    /// How the class of exceptions of GCC's and Clang's C++ begins; the last byte says whether one depends on another.
    const CXX: u64 = u64::from_be_bytes(*b"GNUCC++\0");

    unsafe extern "C" {
        #[link_name = "_Unwind_SetIP"]
        fn set_instruction(context: *mut c_void, address: usize);
        #[link_name = "_Unwind_GetLanguageSpecificData"]
        fn data_of(context: *mut c_void) -> usize;
        #[link_name = "_Unwind_DeleteException"]
        fn delete(exception: *mut Exception);
    }

    /// Calls `run` with its argument. The data that the unwinder keeps for the function's handler are the address to go on at.
    #[unsafe(naked)]
    pub unsafe extern "C-unwind" fn call(run: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) {
        naked_asm!(
            ".cfi_startproc",
            // Four-byte addresses relative to their own position.
            ".cfi_personality 0x1b, {handler}",
            ".cfi_lsda 0x1b, .Let_jvmpi_caught",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "mov rax, rdi",
            "mov rdi, rsi",
            "call rax",
            "2:",
            "pop rbp",
            ".cfi_remember_state",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_restore_state",
            ".Let_jvmpi_caught:",
            "call {drop}",
            "jmp 2b",
            ".cfi_endproc",
            handler = sym handler,
            drop = sym drop_exception,
        )
    }

    /// The personality routine of the frame above: catches all exceptions except Rust's.
    unsafe extern "C" fn handler(
        _version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut Exception,
        context: *mut c_void,
    ) -> c_int {
        if actions & FORCED != 0 || PANIC.contains(&class) {
            return CONTINUE;
        }
        if actions & SEARCH_PHASE != 0 {
            return HANDLER_FOUND;
        }
        if actions & HANDLER_FRAME == 0 {
            return CONTINUE;
        }
        CAUGHT.set(exception);
        // SAFETY: the unwinder's context, of the frame above.
        unsafe { set_instruction(context, data_of(context)) };
        INSTALL_CONTEXT
    }

    unsafe extern "C" fn drop_exception() {
        let exception = CAUGHT.replace(ptr::null_mut());
        if exception.is_null() {
            return;
        }
        // SAFETY: the exception that was caught, once.
        unsafe {
            if (*exception).class & !0xff != CXX || !end_cxx(exception) {
                delete(exception);
            }
        }
    }

    /// Ends an exception of C++ as a `catch (...)` does: only that runs its destructor, takes it from those that are counted as uncaught, and
    /// keeps one that others still point to. The library that threw it may be linked into the agent, so it is asked where that is.
    unsafe fn end_cxx(exception: *mut Exception) -> bool {
        // SAFETY: the exception lives, and its cleanup is a function of the library that has thrown it.
        unsafe {
            let mut of = MaybeUninit::<libc::Dl_info>::uninit();
            if libc::dladdr((*exception).cleanup, of.as_mut_ptr()) == 0 {
                return false;
            }
            let library = libc::dlopen(of.assume_init().dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return false;
            }
            let find = |name: &CStr| libc::dlsym(library, name.as_ptr());
            let (begin, end) = (find(c"__cxa_begin_catch"), find(c"__cxa_end_catch"));
            let is_there = !begin.is_null() && !end.is_null();
            if is_there {
                let begin: unsafe extern "C" fn(*mut Exception) -> *mut c_void = transmute(begin);
                let end: unsafe extern "C" fn() = transmute(end);
                begin(exception);
                end();
            }
            libc::dlclose(library);
            is_there
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod frame {
    use std::ffi::c_void;

    /// Calls `run` with its argument. There is no implementation for this processor: an exception ends the process.
    pub unsafe extern "C-unwind" fn call(run: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) {
        // SAFETY: guaranteed by the caller.
        unsafe { run(argument) }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// An exception of another language, as its runtime makes one.
    #[repr(C, align(16))]
    struct Foreign {
        class: u64,
        cleanup: Option<extern "C" fn(i32, *mut Foreign)>,
        private: [u64; 2],
    }

    unsafe extern "C-unwind" {
        #[link_name = "_Unwind_RaiseException"]
        fn raise(exception: *mut Foreign) -> i32;
    }

    thread_local! {
        /// Tests run concurrently.
        static CLEANED: Cell<u32> = const { Cell::new(0) };
    }

    extern "C" fn cleanup(_reason: i32, exception: *mut Foreign) {
        CLEANED.set(CLEANED.get() + 1);
        // SAFETY: the box from `throw`.
        drop(unsafe { Box::from_raw(exception) });
    }

    fn throw() {
        let exception = Foreign { class: u64::from_be_bytes(*b"TESTTEST"), cleanup: Some(cleanup), private: [0; 2] };
        // SAFETY: an exception that its cleanup frees.
        let why = unsafe { raise(Box::into_raw(Box::new(exception))) };
        panic!("nobody takes it: {why}");
    }

    #[test]
    fn what_is_thrown_is_caught_and_dropped() {
        let mut passed = 0;
        for at in 0..1000 {
            let before = (at, CLEANED.get());
            assert_eq!(caught(throw), Err(Thrown));
            assert_eq!(before, (at, CLEANED.get() - 1));
            assert_eq!(caught(|| passed += 1), Ok(()));
        }
        assert_eq!(passed, 1000);
    }

    #[test]
    fn the_innermost_takes_it() {
        let outer = caught(|| {
            let inner = caught(throw);
            (inner, 7)
        });
        assert_eq!(outer, Ok((Err(Thrown), 7)));
    }

    #[test]
    fn what_is_returned_comes_back() {
        assert_eq!(caught(|| "a string".to_owned()).as_deref(), Ok("a string"));
    }

    #[test]
    fn a_panic_goes_on() {
        let panicked = catch_unwind(AssertUnwindSafe(|| caught(|| panic!("for a test"))));
        assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "for a test");
    }
}
