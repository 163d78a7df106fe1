//! `INSTRUCTION_START`. The target of a branch is known at the thread's next step, so the branch is reported then,
//! before that step.

use std::sync::{Arc, RwLock};

use et_jvm::env::{Env, MethodId};
use et_jvm::sync::{lock, read, write};
use jni_sys::{JNIEnv, jmethodID};
use rustc_hash::FxHashMap;

use crate::abi::{Details, Instruction, event};
use crate::classes;
use crate::deliver;
use crate::hooks;
use crate::host::Host;
use crate::records::Branch;
use crate::starts;

static CODE: RwLock<Option<FxHashMap<usize, Arc<[u8]>>>> = RwLock::new(None);

fn code(host: &Host, method: jmethodID) -> Arc<[u8]> {
    let known = read(&CODE).as_ref().and_then(|c| c.get(&(method as usize)).cloned());
    known.unwrap_or_else(|| {
        let code: Arc<[u8]> = host.jvmti.bytecodes(MethodId(method)).unwrap_or_default().into();
        let mut table = write(&CODE);
        table.get_or_insert_default().insert(method as usize, Arc::clone(&code));
        code
    })
}

/// The current thread is about to run an instruction.
pub fn step(host: &Host, env: Env, id: jmethodID, location: i64) {
    if hooks::is_own(id) {
        return;
    }
    let record = starts::announce(host, env);
    if record.is_inside() {
        return;
    }
    let before = lock(&record.branch).take();
    if let Some(before) = before {
        let next = (before.method == id as usize).then_some(location);
        let branch = outcome(&code(host, before.method as jmethodID), before.offset as usize, next);
        tell(env.raw(), before.method as jmethodID, before.offset, branch);
    }
    if classes::tell_of_method(host, env, id).is_none() {
        return;
    }
    let (code, offset) = (code(host, id), location as i32);
    if code.get(location as usize).is_some_and(|opcode| is_branch(*opcode)) {
        *lock(&record.branch) = Some(Branch { method: id as usize, offset });
    } else {
        tell(env.raw(), id, offset, [0; 3]);
    }
}

fn tell(env: *mut JNIEnv, method_id: jmethodID, offset: i32, branch: [i32; 3]) {
    let instruction = Instruction { method_id, offset, branch };
    deliver::tell(env, event::INSTRUCTION_START, Details { instruction });
}

const TABLESWITCH: u8 = 170;
const LOOKUPSWITCH: u8 = 171;

/// `if…`, `tableswitch`, `lookupswitch`, `ifnull`, `ifnonnull`.
fn is_branch(opcode: u8) -> bool {
    matches!(opcode, 153..=166 | TABLESWITCH | LOOKUPSWITCH | 198 | 199)
}

/// Data about a branch that continued at `next`, if that is in the method.
fn outcome(code: &[u8], at: usize, next: Option<i64>) -> [i32; 3] {
    let int = |at: usize| code.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes);
    let reaches = |offset: i32| next == Some(at as i64 + i64::from(offset));
    let operands = (at + 4) & !3;
    match code.get(at) {
        Some(&TABLESWITCH) => {
            let (low, high) = (int(operands + 4), int(operands + 8));
            let keys = low..=high.min(low.saturating_add(code.len() as i32));
            let key = keys.zip(0..).find(|(_, number)| reaches(int(operands + 12 + 4 * number))).map(|(key, _)| key);
            // The VM does not show the key of the default.
            let is_default = reaches(int(operands));
            let key = if is_default { None } else { key };
            [key.unwrap_or_else(|| high.wrapping_add(1)), low, high]
        }
        Some(&LOOKUPSWITCH) => {
            let pairs = int(operands + 4);
            let chosen = (0..pairs.clamp(0, code.len() as i32))
                .find(|pair| reaches(int(operands + 12 + 8 * *pair as usize)))
                .filter(|_| !reaches(int(operands)));
            [chosen.unwrap_or(pairs), pairs, 0]
        }
        Some(_) => {
            let target = code.get(at + 1..at + 3).and_then(|bytes| bytes.try_into().ok()).map_or(0, i16::from_be_bytes);
            [i32::from(reaches(i32::from(target))), 0, 0]
        }
        None => [0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_where_they_go_to_their_target() {
        let code = [3, 154, 0, 10, 0];
        assert_eq!(outcome(&code, 1, Some(11)), [1, 0, 0]);
        assert_eq!(outcome(&code, 1, Some(4)), [0, 0, 0]);
        assert_eq!(outcome(&code, 1, None), [0, 0, 0]);
    }

    #[test]
    fn switches_tell_where_they_go() {
        // At 1: the operands begin at 4.
        let mut table = vec![0, TABLESWITCH, 0, 0];
        for word in [99, 5, 7, 30, 40, 30] {
            table.extend(i32::to_be_bytes(word));
        }
        assert_eq!(outcome(&table, 1, Some(41)), [6, 5, 7]);
        assert_eq!(outcome(&table, 1, Some(31)), [5, 5, 7]);
        assert_eq!(outcome(&table, 1, Some(100)), [8, 5, 7]);
        let mut lookup = vec![0, LOOKUPSWITCH, 0, 0];
        for word in [99, 2, 1000, 30, 2000, 40] {
            lookup.extend(i32::to_be_bytes(word));
        }
        assert_eq!(outcome(&lookup, 1, Some(41)), [1, 2, 0]);
        assert_eq!(outcome(&lookup, 1, Some(100)), [2, 2, 0]);
        assert_eq!(outcome(&lookup[..9], 1, Some(41)), [0, 0, 0], "cut short");
    }
}
