//! What retains the heap at the end, what retains what grew, and the shortest paths to it from static fields and
//! threads.

use et_names::{FieldId, SiteId};
use et_reader::made_in::MadeIn;
use et_reader::model::Node;
use et_reader::population::Population;
use et_reader::source::Reading;
use et_reader::types::{TypeId, for_people};
use rustc_hash::FxHashMap;

use super::Told;
use super::data::{Growth, Held, Holding, Report, Retained, RetainedLine, Way};
use super::lines::Callers;
use super::totals::Totals;
use crate::heap::growth::{self, Content, Grown, LOOKS, Look};
use crate::heap::paths::{self, Path, Walk};
use crate::heap::{self, Dominance, HeapError, Matching, Snapshot};
use crate::summary::Origin;

/// Maximum number of top-level dominators and of classes.
const TOP: usize = 30;
const CLASSES: usize = 150;
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

/// Reads the heap at its moments, and says all that of the report.
pub(super) fn add(
    population: &Population,
    reading: Reading,
    report: &mut Report,
    keys: &[(MadeIn, TypeId)],
    makers: &Makers<'_>,
    told: &mut Told<'_>,
) -> Result<(), HeapError> {
    let end = u128::from(population.end.tick);
    let ticks = LOOKS.map(|thousandths| (end * u128::from(thousandths) / 1000) as u64);
    let mut looks: Vec<Look> = Vec::new();
    let source = told.source;
    let snapshot = heap::take_on_the_way(source, reading, &ticks, |_, snapshot| {
        looks.push(Look::at(snapshot, &heap::lasting_dominance(snapshot), &mut |field| told.is_outside_jdk(field)));
    })?;
    let dominance = heap::dominance(&snapshot);
    let live = snapshot.bytes();
    let lasting = heap::lasting_dominance(&snapshot);
    let grown =
        growth::grown(&snapshot, &lasting, &looks, (live / TRIFLE).max(1), &mut |field| told.is_outside_jdk(field));
    let mut teller = Teller { snapshot: &snapshot, walk: Walk::through(&snapshot), population, makers, told };
    report.retained = Some(teller.retained(&dominance));
    report.suspects.holdings = teller.holdings(&grown);
    let wanted = |growing: &Growth| growing.still_grows && growing.end.bytes.saturating_mul(100) >= live;
    add_ways(&snapshot, population, &mut report.suspects.growing, keys, wanted);
    Ok(())
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

impl Teller<'_, '_, '_> {
    /// Describes the path to an object in the program's terms: the static field or other root, and the program's fields
    /// on the way. The internals of the JDK's collections are omitted.
    fn way(&mut self, path: &Path) -> String {
        let mut words = match path.root_field {
            Some(field) => format!("static {}", self.snapshot.field_text(field)),
            None => path.root.clone(),
        };
        let mut is_near = true;
        let mut last = None;
        for step in path.steps.iter().skip(1) {
            let Some(field) = step.field.filter(|&field| self.told.is_outside_jdk(field)) else {
                is_near = false;
                continue;
            };
            // Lists are held node by node.
            if last == Some(field) {
                continue;
            }
            last = Some(field);
            let text = self.snapshot.field_text(field);
            // For the object that was just named, the field's name is enough.
            let name = if is_near { text.rsplit('.').next().unwrap_or(&text) } else { &text };
            words += &format!(" → {name}");
            is_near = true;
        }
        words
    }

    /// Whether the program's own fields hold it.
    fn is_programs(&mut self, path: &Path) -> bool {
        let fields: Vec<FieldId> =
            path.root_field.into_iter().chain(path.steps.iter().filter_map(|step| step.field)).collect();
        fields.into_iter().any(|field| self.told.is_outside_jdk(field))
    }

    fn holder(&mut self, node: Node) -> String {
        match self.walk.to(node) {
            Some(path) => self.way(&path),
            None => String::new(),
        }
    }

    /// The top of the dominator tree, and classes.
    fn retained(&mut self, dominance: &Dominance) -> Retained {
        let top = heap::dominators_of(self.snapshot, dominance, &Matching::all(), TOP);
        let mut objects = Vec::new();
        for line in &top.objects {
            self.push(line, 0, &mut objects);
        }
        let classes = heap::classes(self.snapshot, dominance, &Matching::all(), CLASSES);
        Retained { bytes: self.snapshot.bytes(), objects, classes: classes.classes }
    }

    fn push(&mut self, line: &heap::DominatorLine, level: u32, lines: &mut Vec<RetainedLine>) {
        lines.push(RetainedLine {
            level,
            holder: self.holder(line.node),
            class: line.object.class.clone(),
            bytes: line.object.bytes,
            retained: line.object.retained_bytes,
            dominates: line.dominates,
        });
        line.largest.iter().for_each(|below| self.push(below, level + 1, lines));
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
            let mut ways = vec![self.way(&path)];
            if !grown.is_holder {
                let several = paths::to_one(self.snapshot, grown.node, &Matching::all(), SEVERAL);
                explained.extend(several.iter().flat_map(|path| &path.steps).map(|step| step.object.clone()));
                ways = several.iter().map(|path| self.way(path)).collect();
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
            class.starts_with('L') && self.told.owners.origin_of_descriptor(class) != Origin::Jdk
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
            is_programs: self.told.owners.origin_of_descriptor(descriptor) != Origin::Jdk,
            objects: content.objects,
            new: content.new,
            site: self.told.place(place),
            caller: caller.map(|&caller| self.told.method(caller)),
        }
    }
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
