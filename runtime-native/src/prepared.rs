//! What the VM has made for a class by the time that the class is prepared, without a word to anybody:
//!
//! - the strings of its `static final` fields with a `ConstantValue` (JVMS §4.7.2);
//! - the lock under which it will be initialised, an `int[0]` (up to some release before 25);
//! - the array of its constant pool's resolved references, if that has any.

use crate::jvm::env::{Env, Object, StaticField};
use crate::jvm::jvmti::{CLASSES, FINAL, Jvmti, JvmtiError, STATIC, class_status};
use crate::proxy::Proxy;
use crate::tracer::Tracer;

/// Classes looked at for the place of the lock, of those that are initialised and of the others.
const SAMPLES: usize = 100;
const STRING: &str = "Ljava/lang/String;";

/// Tells of what was made for a class. To be called while the class is being prepared.
pub fn announce(tracer: &Tracer, env: Env, class: Object) {
    let proxy = &tracer.proxy;
    env.frame(16, |env| {
        if let Some(lock) = tracer.lock_offset.and_then(|offset| proxy.reference(env, class, offset)) {
            proxy.made(env, lock);
        }
        let klass = proxy.klass(env, class);
        if klass != 0
            && let Some(references) = tracer.hotspot.resolved_references(env, klass)
        {
            proxy.made(env, references);
        }
    });
    for field in constants(tracer.jvmti, class).unwrap_or_default() {
        env.frame(4, |env| {
            if let Some(string) = env.get_static_object(class, field) {
                proxy.made(env, string);
            }
        });
    }
}

/// The static final strings of a class. The class's initialiser has not run, so what has a value has it from the VM.
fn constants(jvmti: Jvmti, class: Object) -> Result<Vec<StaticField>, JvmtiError> {
    let mut found = Vec::new();
    for field in jvmti.class_fields(class)? {
        let constant = STATIC | FINAL;
        if jvmti.field_modifiers(class, field)? & constant == constant
            && jvmti.field_name(class, field)?.descriptor == STRING
        {
            found.push(StaticField(field.0));
        }
    }
    Ok(found)
}

/// Where mirrors hold the lock: the one slot that is 0 in all classes that are initialised and in none of those that are
/// not. No field of `java.lang.Class` is like that. None if this VM has no such lock, or no classes to learn from.
/// `reference_bytes` is what a reference takes in the heap.
pub fn find_lock(env: Env, jvmti: Jvmti, proxy: &Proxy, reference_bytes: u32) -> Option<i64> {
    env.frame(CLASSES, |env| {
        let size = i64::from(proxy.instance_size(env, env.find_class(c"java/lang/Class")?)?);
        let (mut done, mut waiting) = (Vec::new(), Vec::new());
        for class in jvmti.loaded_classes(env).ok()? {
            let status = jvmti.class_status(class).ok()?;
            if status & (class_status::ARRAY | class_status::PRIMITIVE | class_status::ERROR) == 0 {
                let mirrors = if status & class_status::INITIALIZED != 0 { &mut done } else { &mut waiting };
                if mirrors.len() < SAMPLES {
                    mirrors.push(Mirror::read(env, proxy, class, size));
                }
            }
        }
        let (_, first) = (done.first()?, waiting.first()?);
        let mut slots = (0..size / i64::from(reference_bytes)).map(|slot| slot as usize).filter(|&slot| {
            done.iter().all(|mirror| mirror.slot(slot, reference_bytes) == 0)
                && waiting.iter().all(|mirror| mirror.slot(slot, reference_bytes) != 0)
        });
        let offset = slots.next().filter(|_| slots.next().is_none())? as i64 * i64::from(reference_bytes);
        let lock = proxy.reference(env, first.class, offset)?;
        let is_lock = jvmti.class_signature(env.class_of(lock)?).ok()? == "[I" && env.array_length(lock) == 0;
        is_lock.then_some(offset)
    })
}

/// The bytes of a class mirror, its static fields not counted.
struct Mirror<'a> {
    class: Object<'a>,
    words: Vec<u64>,
}

impl<'a> Mirror<'a> {
    fn read(env: Env, proxy: &Proxy, class: Object<'a>, size: i64) -> Self {
        Self { class, words: (0..size).step_by(8).map(|offset| proxy.word(env, class, offset)).collect() }
    }

    /// What the n-th place for a reference holds.
    fn slot(&self, n: usize, reference_bytes: u32) -> u64 {
        slot(&self.words, n, reference_bytes)
    }
}

fn slot(words: &[u64], n: usize, reference_bytes: u32) -> u64 {
    if reference_bytes == 4 { words[n / 2] >> (n % 2 * 32) & 0xffff_ffff } else { words[n] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_halves_of_words_or_words() {
        let words = [1, 2 << 32 | 3];
        assert_eq!([0, 1, 2, 3].map(|n| slot(&words, n, 4)), [1, 0, 3, 2]);
        assert_eq!([0, 1].map(|n| slot(&words, n, 8)), words);
    }
}
