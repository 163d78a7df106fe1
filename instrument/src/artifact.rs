//! Instrumentation of one artifact: rewrites its classes and makes a names table.
//!
//! In two passes: the first parses and measures all classes in parallel; then ids are assigned in the order of the
//! classes, so that they do not depend on scheduling; the second pass writes the classes.

use std::borrow::Cow;

use et_names::{
    Artifact, ArtifactKind, ClassFlags, ClassNames, DYNAMIC_BASE, FieldNames, FieldRefNames, ID_LIMIT, IdBlock,
    JDK_BASE, JDK_LIMIT, MethodNames, NamesTable, SiteNames, Witness, block_base, releases,
};
use et_rewriter::filter::Filter;
use et_rewriter::rewrite::{ClassError, EventSet, FirstIds, HookCounts, IdCounts, Options, Plan};
use rayon::prelude::*;
use thiserror::Error;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::interrupt::{self, Interrupted};
use crate::memory::Budget;
use crate::progress::Progress;
use crate::report::{ArtifactReport, ShortfallReport, Skip};

/// Why an artifact was not rewritten.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// A class that cannot be rewritten, where that is fatal.
    #[error("{place}: {source}")]
    Class {
        /// Container and entry.
        place: String,
        source: ClassError,
    },
    /// Something was skipped under `--strict`.
    #[error("{place}: {why} (only a warning without --strict)")]
    Strict {
        /// Container and entry.
        place: String,
        /// Why it would have been skipped.
        why: String,
    },
    /// There is no room left in the id space.
    #[error("{artifact} needs {needed} ids from {base} on, but ids end at {limit}: {advice}")]
    Ids {
        /// Name of the artifact.
        artifact: String,
        /// Number of ids needed.
        needed: u64,
        /// First id of the block.
        base: u32,
        /// Exclusive upper limit for ids.
        limit: u32,
        /// Advice for the user.
        advice: &'static str,
    },
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// An artifact that this tool has made.
#[derive(Debug, Error)]
#[error("{place}: already instrumented: instrument the original instead")]
pub struct AlreadyInstrumented {
    pub place: String,
}

/// Settings of a command.
#[derive(Debug)]
pub struct Settings {
    pub events: EventSet,
    /// Whether programs that are run with these settings count allocations in place of writing events.
    pub counts: bool,
    /// How much of the time programs that are run with these settings spend on looking what survives collections, in
    /// percent.
    pub survival: Option<u32>,
    /// As in [`Options::leaves`].
    pub leaves: bool,
    /// Which classes get hooks.
    pub filter: Filter,
    /// Whether an entry that cannot be instrumented is an error.
    pub strict: bool,
    /// The output is verified before it is put in place.
    pub check: bool,
    /// Memory budget for unpacked content.
    pub memory: Budget,
    pub progress: Progress,
}

/// A class file to instrument.
#[derive(Debug)]
pub struct ClassInput<'a> {
    /// Entry or file name, for messages.
    pub label: String,
    /// Its content, or the reason why it could not be read.
    pub bytes: Result<Cow<'a, [u8]>, String>,
}

/// Hands out blocks of ids that do not overlap within one command.
#[derive(Debug, Default)]
pub struct Blocks {
    forced: Option<u32>,
    taken: Vec<IdBlock>,
}

impl Blocks {
    /// With `--id-base`, blocks follow each other from there.
    pub fn new(forced: Option<u32>) -> Self {
        Self { forced, taken: Vec::new() }
    }

    fn take(&mut self, name: &str, hash: u64, size: u64, kind: ArtifactKind) -> Result<u32, ArtifactError> {
        let limit = match kind {
            ArtifactKind::Jdk if self.forced.is_none() => JDK_LIMIT,
            ArtifactKind::Jdk | ArtifactKind::Application => DYNAMIC_BASE,
            ArtifactKind::Dynamic | ArtifactKind::Redefined => ID_LIMIT,
        };
        let fail = |base, advice| ArtifactError::Ids { artifact: name.to_owned(), needed: size, base, limit, advice };
        let fits = |base: u32| u64::from(base) + size <= u64::from(limit);
        let mut base = match (self.forced, kind) {
            (Some(base), _) => base,
            (None, ArtifactKind::Jdk) => JDK_BASE,
            (None, _) => block_base(hash, size.min(u64::from(u32::MAX)) as u32),
        };
        if base == 0 || !fits(base) {
            return Err(fail(base, "choose another --id-base, or exclude classes"));
        }
        let mut wrapped = false;
        while let Some(other) =
            self.taken.iter().find(|other| other.overlaps(IdBlock { base, size: size.max(1) as u32 }))
        {
            base = other.base + other.size;
            if !fits(base) {
                if wrapped || self.forced.is_some() {
                    return Err(fail(base, "instrument fewer inputs at once, or choose another --id-base"));
                }
                (base, wrapped) = (JDK_LIMIT, true);
            }
        }
        self.taken.push(IdBlock { base, size: size.max(1) as u32 });
        Ok(base)
    }
}

/// What happened to a class.
#[derive(Debug, PartialEq, Eq)]
pub enum ClassOutcome<T> {
    /// Copied unchanged, and reported.
    Skipped,
    /// The rewriter had nothing to change.
    Same,
    /// New bytes, in the form that the container wants.
    New(T),
}

/// An instrumented artifact.
#[derive(Debug)]
pub struct Instrumented<T> {
    /// One per class, in their order.
    pub outcomes: Vec<ClassOutcome<T>>,
    pub names: NamesTable,
    pub report: ArtifactReport,
}

enum Planned<'a> {
    Ready { plan: Box<Plan<'a>>, hooked: bool },
    Skipped(String),
}

struct Written<T> {
    outcome: ClassOutcome<T>,
    names: Option<ClassNames>,
    hooks: HookCounts,
    methods: u64,
    bytes_out: u64,
    skipped: Option<String>,
}

/// Instruments the classes of an artifact. `pack` converts a new class to the form of the container; it is called in
/// parallel.
pub fn instrument<T: Send>(
    classes: &[ClassInput<'_>],
    name: &str,
    kind: ArtifactKind,
    settings: &Settings,
    blocks: &mut Blocks,
    pack: impl Fn(usize, Vec<u8>) -> T + Sync,
) -> Result<Instrumented<T>, ArtifactError> {
    let Settings { progress, filter, strict, .. } = settings;
    progress.stage(format!("rewriting {name}"));
    progress.expect(classes.len());
    let hash = content_hash(classes, settings, blocks.forced);
    // The base is not known before all classes are measured; planning does not depend on it.
    let (events, leaves) = (settings.events, settings.leaves);
    let (jdk, all_hooked) = (kind == ArtifactKind::Jdk, filter.is_empty());
    let options = Options { events, jdk, artifact_hash: hash, base: 0, leaves, all_hooked };

    let place = |class: &ClassInput<'_>| {
        if class.label == name { name.to_owned() } else { format!("{name}: {}", class.label) }
    };
    let plans = classes.par_iter().map(|class| {
        interrupt::check()?;
        match plan(class, filter, settings.memory, &options) {
            Ok(planned) => match planned {
                Planned::Skipped(why) if *strict => Err(ArtifactError::Strict { place: place(class), why }),
                planned => Ok(planned),
            },
            Err(source) => Err(ArtifactError::Class { place: place(class), source }),
        }
    });
    let plans: Vec<Planned<'_>> = plans.collect::<Result<_, ArtifactError>>()?;

    let (firsts, size) = number(&plans);
    let base = blocks.take(name, hash, size, kind)?;
    let options = Options { base, ..options };

    let work = plans.par_iter().zip(&firsts).enumerate().map(|(index, (planned, first))| {
        interrupt::check()?;
        let class = &classes[index];
        let written = write(class, index, planned, first.above(base), &options, &pack);
        progress.done();
        match &written.skipped {
            Some(why) if *strict => Err(ArtifactError::Strict { place: place(class), why: why.clone() }),
            _ => Ok(written),
        }
    });
    let written: Vec<Written<T>> = work.collect::<Result<_, ArtifactError>>()?;

    let artifact = Artifact { hash, base, name: name.to_owned(), kind, events: settings.events.with(Witness::None) };
    Ok(put_together(artifact, size as u32, classes, &plans, written))
}

/// The names table of an artifact, and the report on it.
fn put_together<T>(
    artifact: Artifact,
    id_count: u32,
    classes: &[ClassInput<'_>],
    plans: &[Planned<'_>],
    written: Vec<Written<T>>,
) -> Instrumented<T> {
    let mut report = ArtifactReport {
        name: artifact.name.clone(),
        hash: format!("{:016x}", artifact.hash),
        id_base: artifact.base,
        id_count,
        ..ArtifactReport::default()
    };
    let mut names = NamesTable::new(artifact);
    let mut outcomes = Vec::with_capacity(written.len());
    for ((class, planned), written) in classes.iter().zip(plans).zip(written) {
        let bytes_in = class.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        report.class_bytes_in += bytes_in;
        report.class_bytes_out += written.bytes_out;
        match written.skipped {
            Some(reason) => report.skipped.push(Skip { entry: class.label.clone(), reason }),
            None => {
                report.classes += 1;
                let release = class.bytes.as_ref().ok().and_then(|bytes| releases::of_class(bytes));
                let newer = release.filter(|release| *release > releases::newest_tested());
                report.newer_than_tested = report.newer_than_tested.max(newer);
                report.excluded += u64::from(matches!(planned, Planned::Ready { hooked: false, .. }));
            }
        }
        report.methods += written.methods;
        report.hooks += written.hooks;
        if let Some(class_names) = &written.names {
            names.push(class_names);
        }
        outcomes.push(written.outcome);
    }
    report.shortfalls = names.shortfalls.iter().map(|short| shortfall(&names, short)).collect();
    Instrumented { outcomes, names, report }
}

/// The hash covers the classes, in order, and all that changes what is made of them.
fn content_hash(classes: &[ClassInput<'_>], settings: &Settings, id_base: Option<u32>) -> u64 {
    let each: Vec<u64> =
        classes.par_iter().map(|class| class.bytes.as_ref().map_or(0, |bytes| xxh3_64(bytes))).collect();
    let mut whole = Xxh3::new();
    for hash in each {
        whole.update(&hash.to_le_bytes());
    }
    whole.update(&[settings.events.bits()]);
    whole.update(settings.filter.describe().as_bytes());
    whole.update(&id_base.unwrap_or(0).to_le_bytes());
    whole.update(env!("CARGO_PKG_VERSION").as_bytes());
    whole.digest()
}

/// Only "already instrumented" is an error; what cannot be read is skipped.
fn plan<'a>(
    class: &'a ClassInput<'_>,
    filter: &Filter,
    memory: Budget,
    options: &Options,
) -> Result<Planned<'a>, ClassError> {
    let bytes = match &class.bytes {
        Ok(bytes) => bytes,
        Err(why) => return Ok(Planned::Skipped(why.clone())),
    };
    // Nothing was claimed for an uncompressed file, but its instrumented form takes memory.
    if let Err(why) = memory.fresh().claim(bytes.len() as u64) {
        return Ok(Planned::Skipped(why));
    }
    let planned = Plan::new(bytes, true, options).and_then(|plan| {
        // The name is known only now; an excluded class is planned a second time, which is rare and cheap.
        if filter.is_empty() || filter.hooks(plan.class_name()) {
            Ok(Planned::Ready { plan: Box::new(plan), hooked: true })
        } else {
            Ok(Planned::Ready { plan: Box::new(Plan::new(bytes, false, options)?), hooked: false })
        }
    });
    match planned {
        Ok(planned) => Ok(planned),
        Err(error @ ClassError::AlreadyInstrumented { .. }) => Err(error),
        Err(error) => Ok(Planned::Skipped(error.to_string())),
    }
}

/// Ids relative to the artifact's base, and how many there are of the most frequent kind.
fn number(plans: &[Planned<'_>]) -> (Vec<Relative>, u64) {
    let mut next = Relative::default();
    let firsts = plans.iter().map(|planned| {
        let first = next;
        if let Planned::Ready { plan, .. } = planned {
            next.advance(plan.counts());
        }
        first
    });
    let firsts = firsts.collect();
    (firsts, next.0.into_iter().max().unwrap_or(0))
}

/// Class, method, field, site and field reference ids, counted from 0. 64 bits cannot overflow here.
#[derive(Clone, Copy, Default)]
struct Relative([u64; 5]);

impl Relative {
    fn advance(&mut self, counts: IdCounts) {
        let steps = [1, counts.methods, counts.fields, counts.sites, counts.field_refs];
        self.0.iter_mut().zip(steps).for_each(|(next, step)| *next += u64::from(step));
    }

    /// Sound once the block has been taken: then `base + size` is below the id limit.
    fn above(self, base: u32) -> FirstIds {
        let [class, method, field, site, field_ref] = self.0.map(|id| base + id as u32);
        FirstIds { class, method, field, site, field_ref }
    }
}

fn write<T>(
    class: &ClassInput<'_>,
    index: usize,
    planned: &Planned<'_>,
    first: FirstIds,
    options: &Options,
    pack: impl Fn(usize, Vec<u8>) -> T,
) -> Written<T> {
    let bytes = class.bytes.as_deref().unwrap_or_default();
    let skipped = |why: String, names| Written {
        outcome: ClassOutcome::Skipped,
        names,
        hooks: HookCounts::default(),
        methods: 0,
        bytes_out: bytes.len() as u64,
        skipped: Some(why),
    };
    let plan = match planned {
        Planned::Skipped(why) => return skipped(why.clone(), None),
        Planned::Ready { plan, .. } => plan,
    };
    let counts = plan.counts();
    match plan.rewrite(first, options) {
        Ok(done) if done.fits(counts) => Written {
            hooks: done.hooks,
            methods: done.methods_with_code.into(),
            bytes_out: done.bytes.len() as u64,
            names: Some(done.names),
            skipped: None,
            outcome: if done.bytes == bytes { ClassOutcome::Same } else { ClassOutcome::New(pack(index, done.bytes)) },
        },
        // Its ids are handed out, so it must fill its place in the table all the same.
        Ok(_) => skipped(
            "the rewriter used ids other than those it requested".into(),
            Some(placeholder(plan, bytes, counts, options)),
        ),
        Err(error) => skipped(error.to_string(), Some(placeholder(plan, bytes, counts, options))),
    }
}

/// The names of a class that was measured but could not be written: its members as they are without hooks, with
/// placeholders for unused ids.
fn placeholder(plan: &Plan<'_>, bytes: &[u8], counts: IdCounts, options: &Options) -> ClassNames {
    let first = FirstIds { class: 1, method: 1, field: 1, site: 1, field_ref: 1 };
    let unhooked = Plan::new(bytes, false, options).and_then(|plan| plan.rewrite(first, options));
    let mut names = unhooked.map(|done| done.names).unwrap_or_default();
    if names.name.is_empty() {
        names.name = plan.class_name().to_owned();
    }
    names.flags.0 |= ClassFlags::NOT_HOOKED;
    let unknown = || "?".to_owned();
    let method = MethodNames { name: unknown(), descriptor: unknown(), access: 0, line: 0 };
    names.methods.resize(counts.methods as usize, method);
    names.fields.resize(counts.fields as usize, FieldNames { name: unknown(), descriptor: unknown(), access: 0 });
    let site = SiteNames { method: 0, descriptor: unknown(), dimensions: 0, line: 0 };
    names.sites.resize(counts.sites as usize, site);
    let field_ref = FieldRefNames { class: unknown(), name: unknown(), descriptor: unknown(), is_static: false };
    names.field_refs.resize(counts.field_refs as usize, field_ref);
    names
}

fn shortfall(names: &NamesTable, short: &et_names::Shortfall) -> ShortfallReport {
    let method = &names.methods[short.method as usize];
    let class = &names.classes[method.class as usize];
    let method = format!("{}.{}{}", names.str(class.name), names.str(method.name), names.str(method.descriptor));
    ShortfallReport { method, hooks: names.str(short.hooks).to_owned(), why: names.str(short.why).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_command_do_not_overlap() {
        let mut blocks = Blocks::new(None);
        let app = ArtifactKind::Application;
        let first = blocks.take("a", 7, 1000, app).unwrap();
        let second = blocks.take("b", 7, 1000, app).unwrap();
        assert_eq!(second, first + 1000);
        assert_eq!(blocks.take("jdk", 7, 1000, ArtifactKind::Jdk).unwrap(), JDK_BASE);
    }

    #[test]
    fn a_forced_base_is_kept_and_bounded() {
        let app = ArtifactKind::Application;
        let mut blocks = Blocks::new(Some(5_000_000));
        assert_eq!(blocks.take("a", 1, 10, app).unwrap(), 5_000_000);
        assert_eq!(blocks.take("b", 2, 10, app).unwrap(), 5_000_010);
        assert!(Blocks::new(Some(DYNAMIC_BASE - 5)).take("a", 1, 10, app).is_err());
        assert!(Blocks::new(Some(DYNAMIC_BASE)).take("a", 1, 10, ArtifactKind::Dynamic).is_ok());
        assert!(Blocks::new(Some(0)).take("a", 1, 10, app).is_err());
        assert!(Blocks::new(None).take("jdk", 1, u64::from(JDK_LIMIT), ArtifactKind::Jdk).is_err());
    }
}
