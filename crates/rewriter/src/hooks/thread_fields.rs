//! Fields that the rewriter adds to `java.lang.Thread` for the runtime.
//!
//! | field | holds |
//! |---|---|
//! | `long etPos, etEnd, etTicket` | position, end and last ticket of the thread's event buffer; while the end is 0 there is none, and the position means nothing |
//! | `long etStackLow, etStackHigh` | where the thread's stack is; both 0 while that is not known |
//! | `long etIds` | the thread's next object id, and above bit 32 how many more are its own |
//! | `int etSite` | the site of the `new` being initialised |
//! | `static final int etEvents` | the events that the JDK's classes are hooked for, as in the class attribute: classes made at run time follow them |

use crate::classfile::{PoolBuilder, PoolFull, access};
use crate::rewrite::EventSet;

const OF_EACH_THREAD: [(&str, &str); 7] = [
    ("etPos", "J"),
    ("etEnd", "J"),
    ("etTicket", "J"),
    ("etStackLow", "J"),
    ("etStackHigh", "J"),
    ("etIds", "J"),
    ("etSite", "I"),
];
const EVENTS: &str = "etEvents";

/// The names of all of them, for who hides them from programs.
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
        let (name, descriptor) = (pool.utf8(name.as_bytes())?, pool.utf8(descriptor.as_bytes())?);
        write(&[access::SYNTHETIC | access::TRANSIENT, name, descriptor, 0]);
    }
    let (name, descriptor, constant) = (pool.utf8(EVENTS.as_bytes())?, pool.utf8(b"I")?, pool.utf8(b"ConstantValue")?);
    let value = pool.integer(events.bits().into())?;
    // One attribute, of two bytes: ConstantValue (JVMS §4.7.2).
    write(&[access::SYNTHETIC | access::STATIC | access::FINAL, name, descriptor, 1, constant, 0, 2, value]);
    Ok(OF_EACH_THREAD.len() + 1)
}
