//! Signals that the runtime handles before the VM. Other signals are passed on to the previous handler.
//!
//! `SIGBUS`: another process has truncated the buffer file, and a store to its mapping has no memory behind it.
//! HotSpot would throw an `InternalError` in Java code that stores through `Unsafe`, and end the process in native
//! code. So the lost part is replaced by anonymous memory, the store is repeated, and the writer ends the trace.
//!
//! `SIGTERM` and others that ask a program to end: the VM handles them with Java code, which may be waiting for the
//! reader of the trace.
#![allow(unsafe_code, reason = "signal handlers")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Signals that ask a program to end and that the VM handles.
const ENDS: [c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The mapping of the buffer file.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// Some of the mapping is no longer backed by the file.
static IS_CUT: AtomicBool = AtomicBool::new(false);
/// The program has been asked to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// The previous handlers, by signal.
static BEFORE: [OnceLock<libc::sigaction>; 65] = [const { OnceLock::new() }; 65];

/// From now on a `SIGBUS` in this address range does not end the process.
pub fn guard(start: usize, len: usize) {
    // SAFETY: a query without side effects.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
    START.store(start, Ordering::Relaxed);
    END.store(start + len, Ordering::Release);
    put_before(libc::SIGBUS, on_lost_memory);
}

/// Whether part of that memory was lost.
pub fn memory_was_lost() -> bool {
    IS_CUT.load(Ordering::Acquire)
}

/// Starts to watch for [`program_is_to_end`]. Signals that the VM does not handle are left alone (`-Xrs`, `nohup`).
pub fn watch_for_ends() {
    for signal in ENDS {
        let is_handled = current(signal)
            .is_some_and(|action| action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN);
        if is_handled {
            put_before(signal, on_end);
        }
    }
}

/// Whether the program has been asked to end.
pub fn program_is_to_end() -> bool {
    IS_ENDING.load(Ordering::Acquire)
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

extern "C" fn on_lost_memory(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is from the system, for a SIGBUS with an address.
    let at = unsafe { (*info).si_addr() } as usize;
    if !replace_from(at) {
        hand_on(signal, info, context);
    }
}

/// Replaces the mapping from the page of `at` on by anonymous memory: the file ends before it.
fn replace_from(at: usize) -> bool {
    let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Acquire));
    if !(start..end).contains(&at) {
        return false;
    }
    let from = at & !(PAGE.load(Ordering::Relaxed) - 1);
    // SAFETY: errno belongs to the interrupted code. The pages are those of our own mapping, which is never unmapped;
    // mmap is a system call that handlers may make.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let new = libc::mmap(from as *mut c_void, end - from, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        *errno = before;
        if new == libc::MAP_FAILED {
            return false;
        }
    }
    IS_CUT.store(true, Ordering::Release);
    true
}

extern "C" fn on_end(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    IS_ENDING.store(true, Ordering::Release);
    hand_on(signal, info, context);
}

/// Calls the previous handler, or restores the default action.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get(signal as usize).and_then(OnceLock::get) else { return };
    match before.sa_sigaction {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // The failed store is repeated, and then ends the process as it would have without us.
            // SAFETY: `before` is an action from the system.
            unsafe { (real_sigaction())(signal, before, std::ptr::null_mut()) };
        }
        // SAFETY: the address is that of a handler, whose signature depends on the flags.
        handler => unsafe {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
            }
        },
    }
}

/// Installs `handler` before the existing one. It blocks the same signals as the existing one.
fn put_before(signal: c_int, handler: Handler) {
    let Some(before) = current(signal) else { return };
    let ours = handler as usize;
    if before.sa_sigaction == ours || BEFORE[signal as usize].set(before).is_err() {
        return;
    }
    let mut action = before;
    action.sa_sigaction = ours;
    action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    action.sa_flags &= !(libc::SA_RESETHAND | libc::SA_NODEFER);
    // SAFETY: an action with a handler that only makes async-signal-safe calls.
    unsafe { (real_sigaction())(signal, &action, std::ptr::null_mut()) };
}

fn current(signal: c_int) -> Option<libc::sigaction> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the old one is only returned; zeroes are a valid value of the struct.
    unsafe {
        let result = (real_sigaction())(signal, std::ptr::null(), action.as_mut_ptr());
        (result == 0).then(|| action.assume_init())
    }
}

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// `sigaction` of the C library. The one of `libjsig` would put our handler after those of the VM, which would be too
/// late.
fn real_sigaction() -> Sigaction {
    static REAL: OnceLock<Sigaction> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: the library is loaded, because this one is linked to it; the type of the function is that of POSIX.
        unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            let function =
                if library.is_null() { std::ptr::null_mut() } else { libc::dlsym(library, c"sigaction".as_ptr()) };
            if function.is_null() { libc::sigaction } else { std::mem::transmute::<*mut c_void, Sigaction>(function) }
        }
    })
}
