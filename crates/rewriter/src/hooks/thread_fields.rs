//! Fields that the rewriter adds to `java.lang.Thread` for the runtime.
//!
//! | field | holds |
//! |---|---|
//! | `long etPos, etEnd, etTicket` | position, end and last ticket of the thread's event buffer; while the end is 0 there is no buffer and the position is meaningless |
//! | `long etStackLow, etStackHigh` | bounds of the thread's stack; both 0 while unknown |
//! | `long etIds` | the thread's next object id, and from bit 32 on the number of ids after it that are reserved for the thread |
//! | `int etSite` | the site of the `new` whose constructor is about to be called, or with bit 31 the number of its stack; 0 where `Object.<init>` finds the stack by itself ([`stacks`](super::stacks)) |
//! | `long etContext` | with stacks, the value of the stack ([`stacks`](super::stacks)) |
//! | `long etStack` | where allocations are only counted, the value of the stack of the next object, besides `etSite` |
//! | `static final int etEvents` | the events that the JDK's classes have hooks for, as in the class attribute; classes created at run time get the same hooks |

use crate::classfile::{PoolBuilder, PoolFull, access};
use crate::rewrite::EventSet;

const OF_EACH_THREAD: [(&str, &str); 9] = [
    ("etPos", "J"),
    ("etEnd", "J"),
    ("etTicket", "J"),
    ("etStackLow", "J"),
    ("etStackHigh", "J"),
    ("etIds", "J"),
    ("etSite", "I"),
    (super::stacks::FIELD, "J"),
    ("etStack", "J"),
];
const EVENTS: &str = "etEvents";

/// Names of all these fields, which the runtime hides from reflection.
pub fn thread_fields() -> impl Iterator<Item = &'static str> {
    OF_EACH_THREAD.into_iter().map(|(name, _)| name).chain([EVENTS])
}

/// Appends the fields to `out` and returns how many there are.
pub(crate) fn write_thread_fields(
    pool: &mut PoolBuilder,
    events: EventSet,
    out: &mut Vec<u8>,
) -> Result<usize, PoolFull> {
    let mut write = |values: &[u16]| values.iter().for_each(|value| out.extend_from_slice(&value.to_be_bytes()));
    for (name, descriptor) in OF_EACH_THREAD {
        // Classes of all packages use that one; the others are HeapProxy's.
        let visible = if name == super::stacks::FIELD { access::PUBLIC } else { 0 };
        let (name, descriptor) = (pool.utf8(name.as_bytes())?, pool.utf8(descriptor.as_bytes())?);
        write(&[visible | access::SYNTHETIC | access::TRANSIENT, name, descriptor, 0]);
    }
    let (name, descriptor, constant) = (pool.utf8(EVENTS.as_bytes())?, pool.utf8(b"I")?, pool.utf8(b"ConstantValue")?);
    let value = pool.integer(events.bits().into())?;
    // A single attribute with two bytes of content: ConstantValue (JVMS §4.7.2).
    write(&[access::SYNTHETIC | access::STATIC | access::FINAL, name, descriptor, 1, constant, 0, 2, value]);
    Ok(OF_EACH_THREAD.len() + 1)
}
