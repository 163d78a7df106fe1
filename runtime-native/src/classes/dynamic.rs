//! Classes created at run time: their class files pass through the rewriter before the VM defines them.
//!
//! Runs on the program's threads, inside class definition, where the program may hold any locks: no Java code is
//! called, and the only locks taken are those of the trace's queue, for a few instructions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use et_format::dynamic::{DynamicClass, DynamicCounts};
use et_format::event::ObjectHash;
use et_names::{ArtifactKind, ClassFlags, ClassId, DynamicIds, NamesTable};
use et_rewriter::classfile::{ClassFile, to_string};
use et_rewriter::filter::Filter;
use et_rewriter::rewrite::{ClassError, EventSet, FirstIds, Options, Plan};

use crate::classes::dynamic_ids;
use crate::output::queue::Queue;

/// Maximum number of classes named in the trace because they could not be rewritten; others are only counted.
const NAMED_FAILURES: u64 = 20;

/// The rewriter of a run.
#[derive(Debug)]
pub struct Dynamic {
    events: EventSet,
    filter: Filter,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    seen: AtomicU64,
    redefined: AtomicU64,
    rewritten: AtomicU64,
    already_instrumented: AtomicU64,
    excluded: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
}

/// Purpose of a class file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To define a new class.
    Definition,
    /// To replace the class file of an existing class.
    Redefinition {
        /// Whether the class is defined by the boot loader: the special cases of `java.base` apply.
        boot: bool,
    },
}

impl Purpose {
    fn kind(self) -> ArtifactKind {
        match self {
            Self::Definition => ArtifactKind::Dynamic,
            Self::Redefinition { .. } => ArtifactKind::Redefined,
        }
    }

    /// Beginning of the message about a class left without hooks.
    fn text(self) -> &'static str {
        match self {
            Self::Definition => "made at run time",
            Self::Redefinition { .. } => "redefined by an agent",
        }
    }
}

/// A class file with hooks.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The class file.
    pub bytes: Vec<u8>,
    /// Its id, which is recorded when the class is defined.
    pub class: ClassId,
}

enum Instrumentation {
    Rewritten(Rewritten, Box<NamesTable>),
    /// Already instrumented, as a class of that artifact.
    AlreadyInstrumented(String, u64),
    Excluded,
    Malformed,
    Failed(String),
}

impl Dynamic {
    /// `events` are those for which the JDK's classes have hooks: classes created at run time get the same.
    pub fn new(events: EventSet, filter: Filter) -> Self {
        Self { events, filter, counts: Counts::default() }
    }

    /// Rewrites a class and queues its names. `None` if it is to be defined unchanged.
    pub fn rewrite(&self, bytes: &[u8], purpose: Purpose, ids: &DynamicIds, queue: &Queue) -> Option<Rewritten> {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.outcome(bytes, purpose, ids)))
            .unwrap_or_else(|_| Instrumentation::Failed("a class: internal error".into()));
        let counts = &self.counts;
        let (count, rewritten) = match outcome {
            Instrumentation::Rewritten(rewritten, names) => {
                queue.names(names.encode());
                (&counts.rewritten, Some(rewritten))
            }
            Instrumentation::AlreadyInstrumented(class, artifact) => {
                queue.instrumented_before(&class, artifact);
                (&counts.already_instrumented, None)
            }
            Instrumentation::Excluded => (&counts.excluded, None),
            Instrumentation::Malformed => (&counts.malformed, None),
            Instrumentation::Failed(why) => {
                if counts.failed.load(Ordering::Relaxed) < NAMED_FAILURES {
                    queue.problem(format!("{} and left without hooks: {why}", purpose.text()), 1);
                }
                (&counts.failed, None)
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        counts.seen.fetch_add(1, Ordering::Relaxed);
        if purpose != Purpose::Definition {
            counts.redefined.fetch_add(1, Ordering::Relaxed);
        }
        counts.nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        rewritten
    }

    fn outcome(&self, bytes: &[u8], purpose: Purpose, ids: &DynamicIds) -> Instrumentation {
        let jdk = purpose == Purpose::Redefinition { boot: true };
        let all_hooked = self.filter.is_empty();
        let mut options = Options { events: self.events, jdk, artifact_hash: 0, base: 0, leaves: true, all_hooked };
        let mut plan = match Plan::new(bytes, true, &options) {
            Ok(plan) => plan,
            Err(ClassError::AlreadyInstrumented { artifact, class }) => {
                return Instrumentation::AlreadyInstrumented(class, artifact);
            }
            // The VM will report what is wrong with it.
            Err(_) => return Instrumentation::Malformed,
        };
        if !self.filter.hooks(plan.class_name()) {
            return Instrumentation::Excluded;
        }
        if plan.is_lambda_form() {
            options.events = self.events.and(EventSet::ALLOC.or(EventSet::UPDATE));
            plan = match Plan::new(bytes, true, &options) {
                Ok(plan) => plan,
                Err(_) => return Instrumentation::Malformed,
            };
        }
        let counts = plan.counts();
        let most = [1, counts.methods, counts.fields, counts.sites, counts.field_refs].into_iter().max().unwrap_or(1);
        let Some(base) = ids.take(most) else {
            return Instrumentation::Failed(format!("{}: no more ids", plan.class_name()));
        };
        (options.base, options.artifact_hash) = (base, base.into());
        let first = FirstIds { class: base, method: base, field: base, site: base, field_ref: base };
        match plan.rewrite(first, &options) {
            Ok(done) if !done.fits(counts) => Instrumentation::Failed(format!(
                "{}: the rewriter used other ids than it had asked for",
                plan.class_name()
            )),
            Ok(done) if done.names.flags.has(ClassFlags::NOT_HOOKED) => {
                let why = done.names.shortfalls.first().map_or("nothing to hook", |shortfall| &shortfall.why);
                Instrumentation::Failed(format!("{}: {why}", plan.class_name()))
            }
            Ok(done) => {
                let mut names = NamesTable::new(dynamic_ids::artifact(base, plan.class_name(), purpose.kind()));
                names.push(&done.names);
                Instrumentation::Rewritten(Rewritten { bytes: done.bytes, class: ClassId(base) }, Box::new(names))
            }
            Err(_) => Instrumentation::Malformed,
        }
    }

    /// Records that the VM has defined a rewritten class.
    pub fn defined(&self, mirror: ObjectHash, class: ClassId, queue: &Queue) {
        queue.dynamic_class(&DynamicClass { mirror, class });
    }

    /// Records that the VM has refused a rewritten class.
    pub fn refused(&self, bytes: &[u8], queue: &Queue) {
        if self.counts.refused.fetch_add(1, Ordering::Relaxed) < NAMED_FAILURES {
            let name = ClassFile::read(bytes).map_or_else(|_| "a class".into(), |class| to_string(class.name));
            queue.problem(format!("made at run time and refused by the VM with hooks, so tried without: {name}"), 1);
        }
        self.counts.rewritten.fetch_sub(1, Ordering::Relaxed);
    }

    /// The counts for the end of the trace.
    pub fn counts(&self) -> DynamicCounts {
        let counts = &self.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DynamicCounts {
            seen: get(&counts.seen),
            redefined: get(&counts.redefined),
            rewritten: get(&counts.rewritten),
            already_instrumented: get(&counts.already_instrumented),
            excluded: get(&counts.excluded),
            malformed: get(&counts.malformed),
            refused: get(&counts.refused),
            failed: get(&counts.failed),
            nanos: get(&counts.nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::BlockKind;

    /// A class file with a static method that stores a `new Object()` to a static field.
    fn class_file(name: &str) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52];
        let mut pool: Vec<Vec<u8>> = Vec::new();
        let mut utf8 = |text: &str| {
            let mut entry = vec![1];
            entry.extend_from_slice(&(text.len() as u16).to_be_bytes());
            entry.extend_from_slice(text.as_bytes());
            pool.push(entry);
        };
        // 1 to 8
        for text in [name, "java/lang/Object", "<init>", "()V", "Code", "make", "kept", "Ljava/lang/Object;"] {
            utf8(text);
        }
        // 9 this, 10 Object, 11 <init>()V, 12 Object.<init>, 13 kept, 14 this.kept
        for entry in
            [&[7, 0, 1][..], &[7, 0, 2], &[12, 0, 3, 0, 4], &[10, 0, 10, 0, 11], &[12, 0, 7, 0, 8], &[9, 0, 9, 0, 13]]
        {
            pool.push(entry.to_vec());
        }
        out.extend_from_slice(&(pool.len() as u16 + 1).to_be_bytes());
        pool.iter().for_each(|entry| out.extend_from_slice(entry));
        // Public, super; no interfaces; one static field; one static method.
        out.extend_from_slice(&[0, 0x21, 0, 9, 0, 10, 0, 0]);
        out.extend_from_slice(&[0, 1, 0, 8, 0, 7, 0, 8, 0, 0]);
        out.extend_from_slice(&[0, 1, 0, 8, 0, 6, 0, 4, 0, 1]);
        let code = [0xbb, 0, 10, 0x59, 0xb7, 0, 12, 0xb3, 0, 14, 0xb1];
        out.extend_from_slice(&[0, 5]);
        out.extend_from_slice(&(code.len() as u32 + 12).to_be_bytes());
        out.extend_from_slice(&[0, 2, 0, 0]);
        out.extend_from_slice(&(code.len() as u32).to_be_bytes());
        out.extend_from_slice(&code);
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        out
    }

    #[derive(Default)]
    struct Rig {
        ids: DynamicIds,
        queue: Queue,
    }

    impl Rig {
        fn rewrite(&self, dynamic: &Dynamic, bytes: &[u8]) -> Option<Rewritten> {
            dynamic.rewrite(bytes, Purpose::Definition, &self.ids, &self.queue)
        }
    }

    fn all() -> Dynamic {
        Dynamic::new(EventSet::ALL, Filter::default())
    }

    #[test]
    fn each_class_gets_a_block_and_a_table_of_its_own() {
        let (rig, dynamic) = (Rig::default(), all());
        let one = rig.rewrite(&dynamic, &class_file("a/A")).unwrap();
        let two = rig.rewrite(&dynamic, &class_file("a/A")).unwrap();
        assert!(one.class != two.class && one.bytes != two.bytes && one.bytes.len() > class_file("a/A").len());
        let tables = rig.queue.take_names();
        assert_eq!(tables.len(), 2);
        for (table, made) in tables.iter().zip([&one, &two]) {
            assert_eq!(table.artifact.base, made.class.0);
            assert_eq!((table.methods.len(), table.sites.len(), table.field_refs.len()), (1, 1, 1));
        }
        let counts = dynamic.counts();
        assert_eq!((counts.seen, counts.rewritten), (2, 2));
        assert!(counts.nanos > 0);
    }

    #[test]
    fn what_needs_no_hooks_or_cannot_have_them_is_left_as_it_is() {
        let rig = Rig::default();
        let mut filter = Filter::default();
        filter.push(false, "b.**").unwrap();
        let dynamic = Dynamic::new(EventSet::ALL, filter);
        let once = rig.rewrite(&dynamic, &class_file("a/A")).unwrap();
        assert_eq!(rig.rewrite(&dynamic, &once.bytes), None);
        assert_eq!(rig.rewrite(&dynamic, &class_file("b/B")), None);
        let good = class_file("a/A");
        for cut in 0..good.len() {
            assert_eq!(rig.rewrite(&dynamic, &good[..cut]), None);
        }
        let counts = dynamic.counts();
        assert_eq!((counts.already_instrumented, counts.excluded), (1, 1));
        assert_eq!(counts.malformed, good.len() as u64);
        assert!(rig.queue.take_blocks().is_empty());
    }

    #[test]
    fn what_replaces_a_class_is_marked() {
        let (rig, dynamic) = (Rig::default(), all());
        let mut sizes = Vec::new();
        for boot in [false, true] {
            let purpose = Purpose::Redefinition { boot };
            let done = dynamic.rewrite(&class_file("java/lang/Thread"), purpose, &rig.ids, &rig.queue);
            sizes.push(done.unwrap().bytes.len());
        }
        // The fields of a thread for its buffer exist and must stay.
        assert!(sizes[0] < sizes[1], "{sizes:?}");
        let kinds: Vec<_> = rig.queue.take_names().iter().map(|table| table.artifact.kind).collect();
        assert_eq!(kinds, [ArtifactKind::Redefined; 2]);
        let counts = dynamic.counts();
        assert_eq!((counts.seen, counts.rewritten, counts.redefined), (2, 2, 2));
    }

    #[test]
    fn compiled_method_handles_tell_of_objects_only() {
        let (rig, dynamic) = (Rig::default(), all());
        let form = rig.rewrite(&dynamic, &class_file("java/lang/invoke/LambdaForm$MH")).unwrap();
        let other = rig.rewrite(&dynamic, &class_file("java/lang/invoke/LambdaFarm$MH")).unwrap();
        assert!(form.bytes.len() < other.bytes.len());
        let text = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        assert!(text(&form.bytes, "putStatic") && text(&form.bytes, "site"));
        assert!(!text(&form.bytes, "entry") && text(&other.bytes, "entry"));
    }

    #[test]
    fn without_ids_left_the_trace_says_so() {
        let (rig, dynamic) = (Rig::default(), all());
        rig.ids.take(et_names::ID_LIMIT - et_names::DYNAMIC_BASE).unwrap();
        assert_eq!(rig.rewrite(&dynamic, &class_file("a/A")), None);
        assert_eq!(dynamic.counts().failed, 1);
        let (kind, raw) = rig.queue.take_blocks().remove(0);
        assert_eq!(kind, BlockKind::Problem);
        assert!(String::from_utf8(raw).unwrap().contains("a/A: no more ids"));
    }

    #[test]
    fn a_refused_class_is_named_and_counts_once() {
        let (rig, dynamic) = (Rig::default(), all());
        let made = rig.rewrite(&dynamic, &class_file("a/A")).unwrap();
        dynamic.refused(&made.bytes, &rig.queue);
        let counts = dynamic.counts();
        assert_eq!((counts.seen, counts.rewritten, counts.refused), (1, 0, 1));
        assert!(String::from_utf8(rig.queue.take_blocks().remove(0).1).unwrap().contains("a/A"));
    }

    /// The VM guarantees native methods some 80 KiB (StackShadowPages) even if the stack is nearly used up.
    #[test]
    fn a_little_stack_is_enough() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let thread = small.spawn(|| Rig::default().rewrite(&all(), &class_file("a/A")).is_some()).unwrap();
        assert!(thread.join().unwrap());
    }
}
