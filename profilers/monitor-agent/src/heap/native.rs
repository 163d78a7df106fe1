//! The native heap: what `malloc` has, of the whole process. The C library says how much it has given out and how much it keeps, and not where; so the
//! layout is a logical one: what is given out, then what is free. Memory that the VM maps itself (metaspace, code, the Java heap) is not part of it.
#![allow(unsafe_code, reason = "a function of the C library, looked up by name")]

use std::sync::Arc;

use et_ddm::Message;
use et_ddm::segment::{Form, Kind, Segment, SegmentWriter, Solidity, State};

use crate::hub::{Line, Note};
use crate::state::Monitor;

/// The number of the native heap.
const HEAP: u32 = 0;
/// Larger than those of the Java heap: an address has 32 bits.
const UNIT: u8 = 16;

/// `struct mallinfo2` of glibc 2.33.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Info {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// Bytes given out, and bytes kept. None if this C library does not say.
fn sizes() -> Option<(u64, u64)> {
    // SAFETY: a look-up by name; the function of that name has this signature.
    let info = unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr());
        if function.is_null() {
            return None;
        }
        std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> Info>(function)()
    };
    Some(((info.uordblks + info.hblkhd) as u64, info.fordblks as u64))
}

fn segments(given_out: u64, kept: u64) -> Vec<Segment> {
    let mut writer = SegmentWriter::new(Form::Native, HEAP, UNIT, 0, super::MOST_RUNS);
    writer.push(State { solidity: Solidity::Hard, kind: Kind::Native }, given_out.div_ceil(UNIT.into()));
    writer.push(State::FREE, kept / u64::from(UNIT));
    writer.finish()
}

/// Sends it. Where the C library does not say, a heap of nothing.
pub fn send(monitor: &Monitor, line: &Arc<Line>) {
    let put = |message| monitor.hub.put(Note::To(Arc::clone(line), message));
    put(Message::HeapStart { heap: HEAP, native: true });
    if let Some((given_out, kept)) = sizes() {
        segments(given_out, kept).into_iter().for_each(|segment| put(Message::HeapSegment(segment)));
    }
    put(Message::HeapEnd { heap: HEAP, native: true });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_counted() {
        let Some((before, _)) = sizes() else { return };
        let block = vec![1_u8; 8 << 20];
        let (after, _) = sizes().unwrap();
        assert!(after >= before + (8 << 20), "{before} {after} {}", block.len());
        let all: u64 = segments(1600, 330).iter().map(Segment::units).sum();
        assert_eq!(all, 120);
    }
}
