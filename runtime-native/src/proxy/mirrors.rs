//! Finds where class mirrors hold what the VM creates for a class. A word is read as a reference only if it is known
//! to be one: a field listed by JVMTI, or a word that leads to the header of the expected object in all mirrors
//! inspected.

use et_format::ArrayLayout;
use et_jvm::env::{Env, FieldId, Object};
use et_jvm::field_ids::FieldIds;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::{CLASSES, Jvmti, JvmtiError, STATIC, class_status};
use et_jvm::references::EmptyInts;

use crate::proxy::{Mirrors, Proxy, Statics};

/// Number of classes inspected to find the lock: this many initialized ones, and this many others.
const SAMPLES: usize = 100;

/// Inspects the mirrors of loaded classes.
pub fn find(env: Env, jvmti: Jvmti, hotspot: &HotSpot, proxy: &Proxy, arrays: &ArrayLayout) -> Mirrors {
    // Bytes of a reference in the heap.
    let Some(&reference_bytes) = arrays.index_scale.get("L") else { return Mirrors::default() };
    let size = env.frame(4, |env| proxy.instance_size(env, env.find_class(c"java/lang/Class")?)).map(i64::from);
    let ids = FieldIds::probe(env, jvmti);
    Mirrors {
        lock: size.and_then(|size| find_lock(env, jvmti, proxy, ids, size, arrays)),
        statics: size.zip(hotspot.static_count_offset()).and_then(|(first, count)| {
            let statics = Statics { count, first };
            are_there(env, jvmti, proxy, ids, statics, reference_bytes).then_some(statics)
        }),
    }
}

/// Whether the static fields of some classes are at exactly these offsets.
fn are_there(env: Env, jvmti: Jvmti, proxy: &Proxy, ids: FieldIds, statics: Statics, reference_bytes: u32) -> bool {
    let is_so = |class: Object| -> Result<bool, JvmtiError> {
        let mut offsets = Vec::new();
        for field in jvmti.class_fields(class)? {
            if jvmti.field_modifiers(class, field)? & STATIC != 0
                && jvmti.field_name(class, field)?.descriptor.starts_with(['L', '['])
            {
                offsets.push(ids.static_offset(FieldId(field.0)).map(i64::from));
            }
        }
        offsets.sort_unstable();
        let count = i64::from(proxy.int_at(env, class, statics.count));
        let row = (0..count).map(|i| Some(statics.first + i * i64::from(reference_bytes)));
        Ok(row.eq(offsets))
    };
    [c"java/lang/Thread", c"java/lang/Class", c"java/lang/String", c"java/lang/System", c"java/lang/Boolean"]
        .into_iter()
        .all(|name| env.frame(4, |env| env.find_class(name).is_some_and(|class| is_so(class).unwrap_or(false))))
}

/// The offset of the lock: the only slot that is 0 in the mirrors of all initialized classes and of no others. The VM
/// keeps the lock in a field of `java.lang.Class` that only mirrors of arrays need (`componentType`; 11 and 17), or in
/// one that no class declares (`init_lock` of javaClasses.hpp; 21 and 25). `size` is the number of bytes of the
/// fields.
fn find_lock(env: Env, jvmti: Jvmti, proxy: &Proxy, ids: FieldIds, size: i64, arrays: &ArrayLayout) -> Option<i64> {
    let reference_bytes = *arrays.index_scale.get("L")?;
    env.frame(CLASSES, |env| {
        let fields = reference_fields(jvmti, ids, env.find_class(c"java/lang/Class")?).ok()?;
        let (mut done, mut waiting) = (Vec::new(), Vec::new());
        for class in jvmti.loaded_classes(env).ok()? {
            let status = jvmti.class_status(class).ok()?;
            if status & class_status::NEVER_LINKED == 0 {
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
        // A slot without a declared field may contain anything; it is read as a reference only if it is certain to be
        // one.
        if !fields.contains(&offset) {
            return lead_to_locks(env, proxy, &waiting, offset, arrays).then_some(offset);
        }
        let lock = proxy.reference(env, first.class, offset)?;
        let is_lock = jvmti.class_signature(env.class_of(lock)?).ok()? == "[I" && env.array_length(lock) == 0;
        is_lock.then_some(offset)
    })
}

/// Whether the words at this offset lead to locks, in mirrors of classes that are not initialized.
fn lead_to_locks(env: Env, proxy: &Proxy, waiting: &[Mirror], offset: i64, arrays: &ArrayLayout) -> bool {
    let (Some(&reference_bytes), [Some(&objects), Some(&ints)]) =
        (arrays.index_scale.get("L"), ["L", "I"].map(|kind| arrays.base_offset.get(kind)))
    else {
        return false;
    };
    let word = |object: Object, offset: i64| {
        let within = offset % 8;
        slot(&[proxy.word(env, object, offset - within)], (within / 4) as usize, reference_bytes)
    };
    // If a collection moves objects meanwhile, nothing matches; then try again.
    (0..3).any(|_| {
        let Some(locks) = EmptyInts::find(env, word, reference_bytes, objects.into(), ints as usize) else {
            return false;
        };
        let mut words = waiting.iter().map(|mirror| word(mirror.class, offset)).filter(|&word| word != 0).peekable();
        // Some classes may have been initialized since.
        words.peek().is_some() && words.all(|word| locks.is_one(word))
    })
}

/// The offsets of the instance fields of reference types that a class declares.
fn reference_fields(jvmti: Jvmti, ids: FieldIds, class: Object) -> Result<Vec<i64>, JvmtiError> {
    let mut offsets = Vec::new();
    for field in jvmti.class_fields(class)? {
        let is_static = jvmti.field_modifiers(class, field)? & STATIC != 0;
        if !is_static && jvmti.field_name(class, field)?.descriptor.starts_with(['L', '[']) {
            offsets.extend(ids.instance_offset(field).map(i64::from));
        }
    }
    Ok(offsets)
}

/// The words of a class mirror, without its static fields.
struct Mirror<'a> {
    class: Object<'a>,
    words: Vec<u64>,
}

impl<'a> Mirror<'a> {
    fn read(env: Env, proxy: &Proxy, class: Object<'a>, size: i64) -> Self {
        Self { class, words: (0..size).step_by(8).map(|offset| proxy.word(env, class, offset)).collect() }
    }

    /// The value of the n-th reference slot.
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
