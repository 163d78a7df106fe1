//! The agent for monitors (`monitor/`) as part of a traced run: options `ddm`, `xml` and `profile`. It is a separate
//! library in the same folder, loaded only on request; the runtime provides what it cannot know without hooks
//! ([`rates`]).
#![allow(unsafe_code, reason = "loads a library and calls its functions")]

pub mod rates;
mod wanted;

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use et_ddm::ours::{TAKE_SOURCE, TakeSource};
use et_jvm::env::Vm;
use jni_sys::{JNI_OK, JavaVM, jint};

pub use wanted::{Wanted, WantedError};

const LIBRARY: &str = "libet_monitor.so";

/// Loads the agent with its options. The agent reports errors in them itself.
pub fn load(vm: Vm, wanted: &Wanted) -> Result<(), String> {
    let path =
        library().ok_or_else(|| format!("cannot find {LIBRARY}: the system does not say where this library is"))?;
    let handle = open(&path)?;
    let missing =
        |what: &CStr| format!("{} has no {}: it is of another version", path.display(), what.to_string_lossy());
    if wanted.serves {
        let take = symbol(handle, TAKE_SOURCE).ok_or_else(|| missing(TAKE_SOURCE))?;
        // SAFETY: the type of this function in every version of the library.
        let take: TakeSource = unsafe { std::mem::transmute::<*mut c_void, TakeSource>(take) };
        take(rates::source());
    }
    let on_load = symbol(handle, c"Agent_OnLoad").ok_or_else(|| missing(c"Agent_OnLoad"))?;
    type OnLoad = unsafe extern "system" fn(*mut JavaVM, *const c_char, *mut c_void) -> jint;
    // SAFETY: the type that JVMTI defines for this function.
    let on_load: OnLoad = unsafe { std::mem::transmute::<*mut c_void, OnLoad>(on_load) };
    let options = CString::new(wanted.agent_options()).map_err(|_| "options cannot hold a zero byte".to_owned())?;
    // SAFETY: called within our own `Agent_OnLoad`, with the VM passed to it.
    match unsafe { on_load(vm.raw(), options.as_ptr(), std::ptr::null_mut()) } {
        JNI_OK => Ok(()),
        _ => {
            Err("options ddm, xml, profile and filter: the agent that they are for did not start, see above".to_owned())
        }
    }
}

/// The agent's path, beside this library.
fn library() -> Option<PathBuf> {
    // SAFETY: an address in this library; the result is only read.
    let own = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(library as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname).to_owned()
    };
    // An instrumented JDK loads it through a link in another folder.
    let own = Path::new(OsStr::from_bytes(own.to_bytes()));
    Some(own.canonicalize().unwrap_or_else(|_| own.to_owned()).with_file_name(LIBRARY))
}

fn open(path: &Path) -> Result<*mut c_void, String> {
    const FLAGS: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL;
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("cannot load {}", path.display()))?;
    // SAFETY: our own library, which does nothing when it is loaded and is never unloaded.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), FLAGS);
        if !handle.is_null() {
            return Ok(handle);
        }
        let why = libc::dlerror();
        let why = if why.is_null() { "no reason given".into() } else { CStr::from_ptr(why).to_string_lossy() };
        Err(format!("options ddm, xml and profile need {}: {why}", path.display()))
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle from `dlopen`, and a name that ends with zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
