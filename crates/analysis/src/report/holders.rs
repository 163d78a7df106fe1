//! What holds the heap at the end and when most was alive, what holds what grew, and the shortest paths to it from static
//! fields and threads.
//!
//! Running methods hold only what nothing else does, here: a list that one is adding to is its holder's, as it was before.

use std::io;

use et_names::{FieldId, SiteId};
use et_reader::blocks::glimpse::{Glimpse, Glimpses, When};
use et_reader::made_in::MadeIn;
use et_reader::model::Node;
use et_reader::population::Population;
use et_reader::source::Reading;
use et_reader::types::{TypeId, for_people};
use rustc_hash::FxHashMap;

use super::Told;
use super::data::{Growth, Held, Holding, Idle, LifeLine, Report, Retained, RetainedLine, RootLine, Way};
use super::lines::Callers;
use super::totals::Totals;
use crate::fold::ahead;
use crate::heap::growth::{self, Content, Grown, LOOKS, Look};
use crate::heap::paths::{self, Path, Walk};
use crate::heap::{
    self, Dominance, Glimpsed, HeapError, HeapTop, HeldFrom, Matching, Moment, RootKind, Snapshot, TreeBounds,
};
use crate::summary::Origin;

/// How much of a dominator tree is listed: what is less than 0.5 % of the heap is not.
const TREE: TreeBounds = TreeBounds { levels: 4, rows: 300, least: 200 };
/// Maximum number of classes and of roots.
const CLASSES: usize = 150;
const ROOTS: usize = 100;
/// Growth by less than one in this many of the heap is negligible: 2 %.
const TRIFLE: u64 = 50;
/// Maximum number of growing holders.
const HOLDINGS: usize = 20;
/// Maximum number of paths to what has several holders.
const SEVERAL: usize = 4;
/// Maximum number of sites for which paths are searched.
const SITES: usize = 8;
/// Maximum number of paths for each.
const WAYS: usize = 3;
/// Objects of a site that are asked about.
const OBJECTS: usize = 10_000;

/// What each root holds, by its description: objects and bytes.
type Roots = FxHashMap<String, (u64, u64)>;

/// The heap when most was alive, as far as it is needed later.
struct AtPeak {
    look: Look,
    retained: Retained,
    roots: Roots,
}

/// When most was alive: behind so many bytes that were allocated, of which the last came at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakAt {
    pub tick: u64,
    pub made_bytes: u64,
    pub live_bytes: u64,
}

/// What the heap at the moments of a report tells.
pub(super) struct Heaps<'a> {
    at_end: Snapshot<'a>,
    retained: Retained,
    roots: Roots,
    holdings: Vec<Holding>,
    /// `None` if most was alive at the end.
    at_peak: Option<(Retained, Roots)>,
}

impl<'a> Heaps<'a> {
    /// Looks at the heap in the second half of the run, at its end, and when most was alive: `peak`; `None` if that was at the end. Where there
    /// are glimpses, these are it; otherwise all records are read.
    pub fn read(
        population: &Population,
        reading: Reading,
        peak: Option<PeakAt>,
        glimpses: Option<&Glimpses>,
        makers: &Makers<'_>,
        told: &mut Told<'a>,
    ) -> Result<Self, HeapError> {
        let mut seen = Seen { population, makers, told, looks: Vec::new(), at_peak: None };
        let glimpses = glimpses.filter(|glimpses| suffice(glimpses, peak));
        // Where they are damaged, the trace may be intact.
        let at_end = match glimpses.and_then(|glimpses| seen.glimpses(glimpses, peak).ok()) {
            Some(at_end) => at_end,
            None => seen.records(reading, peak)?,
        };
        let Seen { looks, at_peak, .. } = seen;
        let dominance = heap::lasting_dominance(&at_end);
        let peak = at_peak.as_ref().map(|peak| &peak.look);
        let least = (at_end.bytes() / TRIFLE).max(1);
        let grown = growth::grown(&at_end, &dominance, &looks, peak, least, &mut |field| told.is_outside_jdk(field));
        let mut teller = Teller::new(&at_end, population, makers, told);
        let (retained, roots) = teller.retained(&dominance);
        let holdings = teller.holdings(&grown);
        let at_peak = at_peak.map(|AtPeak { retained, roots, .. }| (retained, roots));
        Ok(Self { at_end, retained, roots, holdings, at_peak })
    }

    /// Says of a report, whose lifetimes and growing sites are known, all that its heaps tell.
    pub fn tell(self, population: &Population, report: &mut Report, keys: &[(MadeIn, TypeId)], told: &mut Told<'a>) {
        let Self { at_end: snapshot, retained, roots, holdings, at_peak } = self;
        let live = snapshot.bytes();
        let line = |root: &str| root_line(root, &roots, at_peak.as_ref().map(|(_, roots)| roots));
        report.suspects.holdings = holdings;
        report.suspects.idle = idle(&snapshot, told, &report.lifetimes.classes, line);
        report.roots = root_lines(&roots, at_peak.as_ref().map(|(_, roots)| roots));
        report.retained = Some(retained);
        report.retained_at_peak = at_peak.map(|(retained, _)| retained);
        let wanted = |growing: &Growth| growing.still_grows && growing.end.bytes.saturating_mul(100) >= live;
        add_ways(&snapshot, population, &mut report.suspects.growing, keys, wanted);
    }
}

/// Whether glimpses show all that a report needs. That of the peak is of a moment at which dead objects were looked for: most may have been alive
/// at another.
fn suffice(glimpses: &Glimpses, peak: Option<PeakAt>) -> bool {
    let find = |when: When| glimpses.all.iter().find(|glimpse| glimpse.when == when);
    let Some(end) = find(When::End) else { return false };
    // Those between the two have what is dead as well.
    let most = find(When::Peak).map_or(end.live_bytes, |peak| peak.live_bytes);
    LOOKS.iter().all(|&share| find(When::Share(share)).is_some())
        && peak.is_none_or(|peak| most.saturating_mul(10) >= peak.live_bytes.saturating_mul(9))
}

/// What was seen of the heap on the way.
struct Seen<'s, 'p, 'a> {
    population: &'s Population,
    makers: &'s Makers<'p>,
    told: &'s mut Told<'a>,
    looks: Vec<Look>,
    at_peak: Option<AtPeak>,
}

impl<'a> Seen<'_, '_, 'a> {
    fn see(&mut self, snapshot: &Snapshot<'a>, is_peak: bool) {
        let Self { population, makers, told, .. } = self;
        let dominance = heap::lasting_dominance(snapshot);
        let look = Look::at(snapshot, &dominance, &mut |field| told.is_outside_jdk(field));
        if is_peak {
            let (retained, roots) = Teller::new(snapshot, population, makers, told).retained(&dominance);
            self.at_peak = Some(AtPeak { look, retained, roots });
        } else {
            self.looks.push(look);
        }
    }

    /// Returns the heap at the end.
    fn records(&mut self, reading: Reading, peak: Option<PeakAt>) -> Result<Snapshot<'a>, HeapError> {
        (self.looks, self.at_peak) = (Vec::new(), None);
        let end = u128::from(self.population.end.tick);
        let ticks = LOOKS.map(|thousandths| (end * u128::from(thousandths) / 1000) as u64);
        let mut moments: Vec<(Moment, bool)> = ticks.iter().map(|&tick| (Moment::Tick(tick), false)).collect();
        if let Some(PeakAt { tick, made_bytes, .. }) = peak {
            moments.insert(ticks.partition_point(|&look| look <= tick), (Moment::Bytes(made_bytes), true));
        }
        let (moments, is_peak): (Vec<Moment>, Vec<bool>) = moments.into_iter().unzip();
        let source = self.told.source();
        heap::take_on_the_way(source, reading, &moments, |number, snapshot| self.see(snapshot, is_peak[number]))
    }

    /// Returns the heap at the end. Without a `peak` most was alive then, also if the glimpse of the peak has what only seemed to be.
    fn glimpses(&mut self, glimpses: &Glimpses, peak: Option<PeakAt>) -> io::Result<Snapshot<'a>> {
        let wanted = glimpses.all.iter().filter(|glimpse| glimpse.when != When::Peak || peak.is_some());
        let glimpsed = Glimpsed::of(self.told.source(), self.population, &glimpses.extra_fields, wanted)?;
        let name = |glimpse: &Glimpse| match glimpse.when {
            When::End => Moment::End.to_string(),
            When::Share(_) | When::Peak => Moment::Tick(glimpse.tick).to_string(),
        };
        let mut heaps = glimpsed.heaps(name);
        let mut at_end = None;
        // While one is looked at, the next is made.
        ahead(0, &mut || heaps.next(), |made| {
            let (glimpse, snapshot) = made?;
            match glimpse.when {
                When::End => at_end = Some(snapshot),
                When::Peak => self.see(&snapshot, true),
                When::Share(_) => self.see(&snapshot, false),
            }
            Ok::<(), io::Error>(())
        })?;
        at_end.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// What a root holds at the end, and when most was alive; `None`: that was at the end.
fn root_line(root: &str, end: &Roots, peak: Option<&Roots>) -> RootLine {
    let of = |roots: &Roots| roots.get(root).copied().unwrap_or_default();
    let (objects, retained) = of(end);
    RootLine { root: root.to_owned(), retained, at_peak: peak.map_or(retained, |peak| of(peak).1), objects }
}

/// What the roots hold that hold most at one of both moments.
fn root_lines(end: &Roots, peak: Option<&Roots>) -> Vec<RootLine> {
    let of_peak = peak.into_iter().flat_map(|peak| peak.keys()).filter(|root| !end.contains_key(*root));
    let mut lines: Vec<RootLine> = end.keys().chain(of_peak).map(|root| root_line(root, end, peak)).collect();
    lines.sort_by(|a, b| {
        let most = |line: &RootLine| (line.retained.max(line.at_peak), line.retained);
        most(b).cmp(&most(a)).then_with(|| a.root.cmp(&b.root))
    });
    lines.truncate(ROOTS);
    lines
}

/// What holds an object that no other holds alone, in the program's terms.
fn held_text(snapshot: &Snapshot<'_>, HeldFrom { root, is_shared }: HeldFrom) -> String {
    let text = match root {
        RootKind::Static(field) => format!("static {}", snapshot.field_text(field)),
        root => paths::root_text(snapshot, root),
    };
    if is_shared { format!("{text}, and others") } else { text }
}

/// Where objects were made: what the heap at a moment does not say of those without a site.
pub(super) struct Makers<'t> {
    callers: &'t Callers,
    /// Of classes, where most of what is alive was made of what has no site.
    without_site: FxHashMap<TypeId, (u64, MadeIn)>,
}

impl<'t> Makers<'t> {
    pub fn of(totals: &Totals, callers: &'t Callers) -> Self {
        let mut without_site: FxHashMap<TypeId, (u64, MadeIn)> = FxHashMap::default();
        for (&(place, class), sums) in totals.sites.iter().filter(|((place, _), _)| place.site().is_none()) {
            let found = (sums.alive.bytes, place);
            let most = without_site.entry(class).or_insert(found);
            *most = (*most).max(found);
        }
        Self { callers, without_site }
    }

    fn place(&self, site: SiteId, class: TypeId) -> MadeIn {
        let without = || self.without_site.get(&class).map(|&(_, place)| place);
        match site {
            SiteId(0) => without().unwrap_or(MadeIn::of_site(site)),
            site => MadeIn::Site(site),
        }
    }
}

struct Teller<'t, 's, 'a> {
    snapshot: &'s Snapshot<'a>,
    walk: Walk<'s, 'a>,
    population: &'t Population,
    makers: &'t Makers<'t>,
    told: &'t mut Told<'a>,
}

impl<'t, 's, 'a> Teller<'t, 's, 'a> {
    fn new(
        snapshot: &'s Snapshot<'a>,
        population: &'t Population,
        makers: &'t Makers<'t>,
        told: &'t mut Told<'a>,
    ) -> Self {
        Self { snapshot, walk: Walk::lasting(snapshot), population, makers, told }
    }

    /// Whether the program's own fields hold it.
    fn is_programs(&mut self, path: &Path) -> bool {
        let fields: Vec<FieldId> =
            path.root_field.into_iter().chain(path.steps.iter().filter_map(|step| step.field)).collect();
        fields.into_iter().any(|field| self.told.is_outside_jdk(field))
    }

    fn holder(&mut self, node: Node) -> String {
        match self.walk.to(node) {
            Some(path) => way_text(self.snapshot, self.told, &path),
            None => String::new(),
        }
    }

    /// The top of the dominator tree, with classes; and what each root holds.
    fn retained(&mut self, dominance: &Dominance) -> (Retained, Roots) {
        let top = HeapTop::of(self.snapshot, dominance, &self.walk);
        let mut roots = Roots::default();
        for (held, (objects, bytes)) in top.by_root() {
            // Frames of one method are one.
            let sum = roots.entry(held_text(self.snapshot, held)).or_default();
            *sum = (sum.0 + objects, sum.1 + bytes);
        }
        let held: FxHashMap<Node, HeldFrom> = top.outermost().iter().copied().collect();
        let lines = top.lines(TREE);
        let objects = lines.into_iter().map(|line| {
            let several = RetainedLine {
                level: line.level,
                object: None,
                objects: line.objects,
                holder: String::new(),
                class: line.class.map(|class| for_people(&self.snapshot.class(class).descriptor)).unwrap_or_default(),
                site: None,
                bytes: 0,
                retained: line.retained,
                dominates: 0,
            };
            let Some(node) = line.node else { return several };
            let object = *self.snapshot.object(node);
            RetainedLine {
                object: Some(format!("{:x}", object.id.0)),
                holder: match held.get(&node) {
                    Some(&held) => held_text(self.snapshot, held),
                    None => self.holder(node),
                },
                class: self.snapshot.class_text(node),
                site: (object.site.0 != 0).then(|| self.told.place(MadeIn::Site(object.site))),
                bytes: object.size,
                dominates: dominance.children.of(node.0).count() as u64,
                ..several
            }
        });
        let objects = objects.collect();
        let classes = heap::classes(self.snapshot, dominance, &Matching::all(), CLASSES).classes;
        let (tick, bytes, count) = (self.snapshot.taken().tick, self.snapshot.bytes(), self.snapshot.len() as u64);
        (Retained { tick, bytes, count, objects, classes }, roots)
    }

    fn holdings(&mut self, grown: &[Grown]) -> Vec<Holding> {
        // What has several holders grows together with these.
        let mut explained: Vec<String> = Vec::new();
        let mut holdings: Vec<(Option<String>, Holding)> = Vec::new();
        for grown in grown {
            let content = self.content(grown).copied();
            let held = content.map(|content| self.held(&content));
            let Some(path) = self.walk.to(grown.node) else { continue };
            let is_programs = self.is_programs(&path);
            let mut ways = vec![way_text(self.snapshot, self.told, &path)];
            if !grown.is_holder {
                let several = paths::to_one(self.snapshot, grown.node, &Matching::all(), SEVERAL);
                explained.extend(several.iter().flat_map(|path| &path.steps).map(|step| step.object.clone()));
                ways = several.iter().map(|path| way_text(self.snapshot, self.told, path)).collect();
                ways.dedup();
            }
            let object = format!("{:x}", self.snapshot.object(grown.node).id.0);
            let is_container = grown.is_holder && held.is_none();
            holdings.push((
                is_container.then_some(object),
                Holding {
                    ways,
                    is_holder: grown.is_holder,
                    class: self.snapshot.class_text(grown.node),
                    is_programs: is_programs || held.as_ref().is_some_and(|held| held.is_programs),
                    retained: grown.retained,
                    course: grown.course.to_vec(),
                    at_peak: grown.at_peak,
                    held,
                },
            ));
        }
        let is_explained = |object: &Option<String>| object.as_ref().is_some_and(|object| explained.contains(object));
        holdings.retain(|(object, _)| !is_explained(object));
        holdings.truncate(HOLDINGS);
        holdings.into_iter().map(|(_, holding)| holding).collect()
    }

    /// Chooses which content to report: what the program allocated rather than the JDK's containers for it.
    fn content<'g>(&mut self, grown: &'g Grown) -> Option<&'g Content> {
        let counts = |content: &&Content| content.retained.saturating_mul(10) >= grown.retained;
        let descriptor = |content: &Content| &self.snapshot.class(content.class).descriptor;
        let mut candidates = grown.contents.iter().filter(counts).filter(|content| !is_inside(descriptor(content)));
        let of_program = candidates.clone().find(|content| {
            let class = descriptor(content).trim_start_matches('[');
            class.starts_with('L') && self.told.origin_of_descriptor(class) != Origin::Jdk
        });
        of_program.or_else(|| candidates.next())
    }

    fn held(&mut self, content: &Content) -> Held {
        let descriptor = &self.snapshot.class(content.class).descriptor;
        let class = self.population.types.get(descriptor).unwrap_or(TypeId::UNKNOWN);
        let place = self.makers.place(content.site, class);
        let caller = self.makers.callers.get(&(place, class));
        Held {
            class: for_people(descriptor),
            is_programs: self.told.origin_of_descriptor(descriptor) != Origin::Jdk,
            objects: content.objects,
            new: content.new,
            site: self.told.place(place),
            caller: caller.map(|&caller| self.told.method(caller)),
        }
    }
}

/// Describes the path to an object in the program's terms: the static field or other root, and the program's fields
/// on the way. The internals of the JDK's collections are omitted.
fn way_text(snapshot: &Snapshot<'_>, told: &mut Told<'_>, path: &Path) -> String {
    let mut words = match path.root_field {
        Some(field) => format!("static {}", snapshot.field_text(field)),
        None => path.root.clone(),
    };
    let mut is_near = true;
    let mut last = None;
    for step in path.steps.iter().skip(1) {
        let Some(field) = step.field.filter(|&field| told.is_outside_jdk(field)) else {
            is_near = false;
            continue;
        };
        // Lists are held node by node.
        if last == Some(field) {
            continue;
        }
        last = Some(field);
        let text = snapshot.field_text(field);
        // For the object that was just named, the field's name is enough.
        let name = if is_near { text.rsplit('.').next().unwrap_or(&text) } else { &text };
        words += &format!(" → {name}");
        is_near = true;
    }
    words
}

/// What holds most of what was not used for long, by the class of which there is most; `line` says what a root holds.
fn idle(
    snapshot: &Snapshot<'_>,
    told: &mut Told<'_>,
    classes: &[LifeLine],
    line: impl Fn(&str) -> RootLine,
) -> Option<Idle> {
    let most = classes.iter().filter(|class| class.stale.bytes > 0).max_by_key(|class| class.stale.bytes)?;
    let is_it: Vec<bool> = snapshot.classes().map(|(_, class)| for_people(&class.descriptor) == most.name).collect();
    let of_class = snapshot.nodes().filter(|(_, object)| is_it[object.class.0 as usize]);
    let nodes: Vec<Node> = of_class.map(|(node, _)| node).take(OBJECTS).collect();
    let path = paths::to(snapshot, &nodes, &Matching::all(), 1).pop()?;
    // Of classes and constants that says nothing.
    if matches!(path.root_kind, "class" | "constant" | "loader") {
        return None;
    }
    let root = match path.root_field {
        Some(field) => format!("static {}", snapshot.field_text(field)),
        None => path.root.clone(),
    };
    Some(Idle { class: most.name.clone(), way: way_text(snapshot, told, &path), root: line(&root) })
}

/// Whether objects of the class are what a collection is made of inside.
fn is_inside(descriptor: &str) -> bool {
    let is_node = descriptor.starts_with("Ljava/util/") && descriptor.contains('$');
    is_node || descriptor.starts_with("[L") || descriptor.starts_with("[[")
}

/// Says of growing sites what holds their objects.
fn add_ways(
    snapshot: &Snapshot<'_>,
    population: &Population,
    growing: &mut [Growth],
    keys: &[(MadeIn, TypeId)],
    is_wanted: impl Fn(&Growth) -> bool,
) {
    let asked = (0..growing.len()).filter(|&at| is_wanted(&growing[at]));
    let asked: Vec<(usize, SiteId)> = asked.filter_map(|at| Some((at, keys[at].0.site()?))).take(SITES).collect();
    let wanted: FxHashMap<SiteId, ()> = asked.iter().map(|&(_, site)| (site, ())).collect();
    let mut nodes: FxHashMap<SiteId, Vec<Node>> = FxHashMap::default();
    for (node, object) in snapshot.nodes().filter(|(_, object)| wanted.contains_key(&object.site)) {
        nodes.entry(object.site).or_default().push(node);
    }
    for (at, site) in asked {
        let class = keys[at].1;
        let descriptor = population.types.descriptor(class);
        let is_of_class = |node: &&Node| snapshot.class(snapshot.object(**node).class).descriptor == descriptor;
        let of_site = nodes.get(&site).map_or(&[][..], Vec::as_slice);
        let objects: Vec<Node> = of_site.iter().filter(is_of_class).take(OBJECTS).copied().collect();
        growing[at].ways = paths::to(snapshot, &objects, &Matching::all(), WAYS).into_iter().map(way).collect();
    }
}

fn way(path: Path) -> Way {
    let mut steps: Vec<String> = path
        .steps
        .into_iter()
        .map(|step| match step.via {
            // Which element it is says nothing of the others.
            Some(via) if via.starts_with('[') => format!("[] {}", step.class),
            Some(via) => format!(".{} {}", via.rsplit('.').next().unwrap_or(&via), step.class),
            None => step.class,
        })
        .collect();
    // Lists are held node by node.
    steps.dedup();
    Way { root: path.root, steps, objects: path.objects }
}
