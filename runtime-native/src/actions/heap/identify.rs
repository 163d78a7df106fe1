//! Gives every object its id before the recorded walk.
//!
//! A JVMTI heap walk identifies objects only by tags, and its visitor cannot ask for identity hashes. If ids are in
//! mark words, the walk reads and writes them there ([`Marks`]), and one walk suffices. Otherwise two are needed: the
//! first marks all objects, whose hashes then become their tags, and the second records them. If objects have been
//! created meanwhile, another walk follows: they must not be left out, because an object with a hash counts as
//! announced.

use std::env;

use rustc_hash::{FxHashMap, FxHashSet};

use super::marks::{CLASS, Marks};
use super::picture::{self, MARKED, NAMELESS, PROBE, Picture};
use crate::ids;
use crate::output::queue::Queue;
use crate::tracer::Tracer;
use et_jvm::env::{Env, Object};
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::{Jvmti, JvmtiError};

/// Maximum number of walks, in case objects are created all the time.
const MAX_WALKS: u64 = 8;
/// For tests: `tags` tags objects even where mark words would do, `both` walks by mark words and then by tags; with
/// any value the trace contains a note on how the heap was walked.
const WALKS_VARIABLE: &str = "ET_TEST_WALKS";
const TAGS: &str = "tags";
const BOTH: &str = "both";

/// Walks the heap until every object reached has its id. Returns the last walk's result, and how many objects share
/// their id with another.
pub fn identified(tracer: &Tracer, env: Env, walker: Jvmti) -> Result<(Picture, usize), JvmtiError> {
    let class = env.find_class(c"java/lang/Class");
    let mut marks = marks(tracer, env, walker)?;
    if let (Some(_), Some(class)) = (&marks, class) {
        walker.set_tag(class, CLASS)?;
    }
    // Objects created by the first calls would cost another walk.
    draw(&tracer.machine.hotspot, env);
    tracer.machine.proxy.skip_hashes(env, 1);
    if let Some(class) = class {
        tracer.machine.proxy.peek_hash(env, class);
    }
    let (mut taken, mut shared) = (FxHashSet::default(), 0);
    let mut walk = 0;
    loop {
        walk += 1;
        let mut picture = Picture::take(walker, marks.as_mut())?;
        if marks.is_some() {
            // Hashes drawn from here on must differ from those of existing objects.
            skip_taken(tracer, env, picture.class_of.keys());
            name(tracer, env, walker, &mut picture)?;
        }
        let has_gaps = picture.has_gaps() || (wants(BOTH) && marks.is_some());
        if (picture.is_complete() && !has_gaps) || walk == MAX_WALKS {
            if !picture.is_complete() {
                let line = "objects that came to be while the initial objects were written down have no record";
                tracer.output.queue.problem(line, picture.marked.max(1));
            }
            say_how_it_was_walked(tracer.output.queue, "the heap was walked", marks.is_some(), walk);
            marks.into_iter().for_each(Marks::end);
            shared += picture.shared;
            return Ok((picture, shared));
        }
        if let Some(marks) = marks.take_if(|_| has_gaps) {
            // All objects except tagged ones are asked for their ids again.
            taken = picture.class_of.values().copied().collect();
            marks.end();
            if let Some(class) = class.filter(|class| walker.tag(*class) == Ok(CLASS)) {
                walker.set_tag(class, 0)?;
            }
        }
        if marks.is_some() {
            taken.extend(picture.class_of.keys());
        }
        let objects = walker.objects_with_tag(env, MARKED)?;
        shared += give_ids(tracer, env, walker, &objects, &mut taken)?;
        objects.into_iter().for_each(|object| env.delete_local(object));
    }
}

/// Gives ids to numbered objects.
fn name(tracer: &Tracer, env: Env, walker: Jvmti, picture: &mut Picture) -> Result<(), JvmtiError> {
    let numbers: Vec<i64> = (NAMELESS..).take(picture.nameless as usize).map(i64::from).collect();
    let mut ids = FxHashMap::default();
    for (object, number) in walker.objects_with_tags(env, &numbers)? {
        let id = tracer.id(env, object);
        walker.set_tag(object, id.into())?;
        ids.insert(number as u32, id);
        env.delete_local(object);
    }
    picture.name(&ids);
    Ok(())
}

/// Access to mark words; `None` if ids are elsewhere, or if each object must be asked.
fn marks<'a>(tracer: &'a Tracer, env: Env, walker: Jvmti) -> Result<Option<Marks<'a>>, JvmtiError> {
    if tracer.collections.collector.is_some() {
        return Ok(None);
    }
    Ok(mark_shift(tracer, env, walker)?.map(|shift| Marks::new(shift, &tracer.ids.space)))
}

/// The position of ids in mark words, if a heap walk can find mark words; `None` if ids are elsewhere.
pub fn mark_shift(tracer: &Tracer, env: Env, walker: Jvmti) -> Result<Option<u32>, JvmtiError> {
    let Some(&shift) = tracer.ids.mark_shift.get().filter(|_| !wants(TAGS)) else { return Ok(None) };
    let finds = env.frame(1, |env| {
        let Some(probe) = env.new_byte_array(0) else { return Ok(false) };
        let hash = tracer.machine.hotspot.identity_hash(env, probe);
        walker.set_tag(probe, PROBE)?;
        let Some(held) = env.global(probe) else { return Ok(false) };
        let finds = picture::finds_mark_words(walker, shift, hash);
        env.delete_global(held);
        walker.set_tag(probe, 0)?;
        finds
    })?;
    Ok(finds.then_some(shift))
}

/// Whether a test requests this kind of walk.
fn wants(way: &str) -> bool {
    env::var(WALKS_VARIABLE).is_ok_and(|wanted| wanted == way)
}

/// Notes in the trace how the heap was walked, if a test requests it.
pub fn say_how_it_was_walked(queue: &Queue, what: &str, by_marks: bool, count: u64) {
    if env::var_os(WALKS_VARIABLE).is_some() {
        let by = if by_marks { "mark words" } else { "tags" };
        queue.problem(format!("{what} by {by}"), count);
    }
}

/// Tags objects with their ids. Returns how many share theirs with another of the objects in `taken`.
fn give_ids(
    tracer: &Tracer,
    env: Env,
    walker: Jvmti,
    objects: &[Object],
    taken: &mut FxHashSet<u32>,
) -> Result<usize, JvmtiError> {
    let mut ids: Vec<u32> = objects.iter().map(|object| tracer.id_if_any(env, *object)).collect();
    let mut shared = 0;
    for id in ids.iter().filter(|id| **id != 0) {
        shared += usize::from(!taken.insert(*id));
    }
    // Objects without an id get one only now.
    skip_taken(tracer, env, taken.iter());
    for (object, id) in objects.iter().zip(&mut ids) {
        if *id == 0 {
            *id = tracer.id(env, *object);
            shared += usize::from(!taken.insert(*id));
        }
        walker.set_tag(*object, (*id).into())?;
        tracer.tag(*object, *id);
    }
    Ok(shared)
}

/// Makes the VM draw hashes until the next ones differ from those of existing objects. Queries the generator's
/// position, because newer VMs draw hashes during walks, to look up tags.
fn skip_taken<'a>(tracer: &Tracer, env: Env, taken: impl Iterator<Item = &'a u32> + Clone) {
    if tracer.ids.tags.get().is_none()
        && let Some(drawn) = draw(&tracer.machine.hotspot, env)
    {
        tracer.machine.proxy.skip_hashes(env, ids::draws_to_skip(drawn, taken.copied()) as i32);
    }
}

/// The identity hash of a fresh object.
fn draw(hotspot: &HotSpot, env: Env) -> Option<u32> {
    env.frame(1, |env| env.new_byte_array(0).map(|object| hotspot.identity_hash(env, object)))
}
