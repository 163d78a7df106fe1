//! Allocation rates by class, site and callers, while a monitor is watching. Counted where full chunks of events are
//! packed, at no cost to the program; events in a chunk that is not full yet are counted later.

use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use et_ddm::Message;
use et_ddm::ours::{AllocationSource, Allocations, Put, Site};
use et_format::ArrayLayout;
use et_format::event::{self, COUNTED_UNIT, Event, ObjectHash};
use et_format::{ClassRecord, STACK, StackRecord};
use et_jvm::sync::lock;
use et_names::{MethodId, NamesTable, SiteId};
use rustc_hash::FxHashMap;

/// Maximum number of frames kept per allocation: constructors are between the site's method and the object.
const FRAMES: usize = 8;
/// Number of callers in a report.
const CALLERS: usize = 3;
/// Maximum number of places counted between two reports; allocations at further places count only in the sums.
const MOST_PLACES: usize = 1 << 16;

static RATES: OnceLock<Rates> = OnceLock::new();

/// The counts of this process, if a monitor can request them.
pub fn get() -> Option<&'static Rates> {
    RATES.get()
}

/// Makes counts available from now on.
pub fn source() -> AllocationSource {
    RATES.get_or_init(Rates::default);
    AllocationSource { switch, report }
}

extern "C" fn switch(on: u8) {
    if let Some(rates) = get() {
        rates.switch(on != 0);
    }
}

extern "C" fn report(rows: u32, to: *mut c_void, put: Put) {
    if let Some(rates) = get() {
        let chunk = Message::Allocations(rates.report(rows as usize)).chunk();
        put(to, chunk.data.as_ptr(), chunk.data.len());
    }
}

/// Where an object is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    site: SiteId,
    /// Null for arrays allocated by bytecode, whose site determines the class.
    class: ObjectHash,
    /// Number of dimensions below that of the site's type.
    depth: u8,
    /// Callers, innermost first; 0 if unknown.
    frames: [MethodId; FRAMES],
}

/// Allocations at a place. Sizes of array elements are looked up only for a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Made {
    objects: u64,
    /// For arrays: the bytes if elements had 1, 2, 4 or 8.
    bytes: [u64; 4],
}

#[derive(Debug, Default)]
struct Counted {
    places: FxHashMap<Place, Made>,
    /// Allocations at places beyond the maximum.
    others: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Rates {
    is_on: AtomicBool,
    counted: Mutex<Counted>,
    /// Sizes of instances and descriptors, by mirror.
    classes: Mutex<FxHashMap<u32, (u32, Box<str>)>>,
    layout: OnceLock<ArrayLayout>,
    names: Mutex<Names>,
    /// Caller and site of each stack, by its number.
    stacks: Mutex<Vec<(u32, SiteId)>>,
    last: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Names {
    /// Tables not decoded yet.
    raw: Vec<Vec<u8>>,
    /// Sorted by their first id.
    tables: Vec<NamesTable>,
}

/// The stack as far as the events of the chunk show it.
#[derive(Debug, Default)]
struct Stack(Vec<MethodId>);

impl Stack {
    fn left(&mut self, method: MethodId) {
        // Below the oldest frame that the chunk shows, there are others.
        match self.0.iter().rposition(|known| *known == method) {
            Some(place) => self.0.truncate(place),
            None => self.0.clear(),
        }
    }

    fn frames(&self) -> [MethodId; FRAMES] {
        let mut frames = [MethodId(0); FRAMES];
        for (to, from) in frames.iter_mut().zip(self.0.iter().rev()) {
            *to = *from;
        }
        frames
    }
}

impl Rates {
    /// Notes a class record: descriptor and size.
    pub fn class(&self, record: &ClassRecord) {
        lock(&self.classes).insert(record.class.0, (record.instance_size, record.signature.as_str().into()));
    }

    /// Notes a names table.
    pub fn names(&self, raw: &[u8]) {
        lock(&self.names).raw.push(raw.to_vec());
    }

    /// Notes stacks, which come in the order of their numbers.
    pub fn stacks(&self, records: &[StackRecord]) {
        let mut stacks = lock(&self.stacks);
        for record in records {
            if let StackRecord::Frame { number, caller, site } = *record {
                let count = stacks.len().max(number as usize + 1);
                stacks.resize(count, (0, SiteId(0)));
                stacks[number as usize] = (caller, SiteId(site));
            }
        }
    }

    /// Notes the layout of arrays.
    pub fn layout(&self, layout: &ArrayLayout) {
        let _ = self.layout.set(layout.clone());
    }

    fn switch(&self, on: bool) {
        *lock(&self.counted) = Counted::default();
        *lock(&self.last) = on.then(Instant::now);
        self.is_on.store(on, Ordering::Release);
    }

    /// Counts the allocations of a chunk, if a monitor has asked for counts.
    pub fn count(&self, mut events: &[u8]) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let (mut stack, mut places) = (Stack::default(), FxHashMap::<Place, Made>::default());
        let layout = self.layout.get();
        while let Ok(Some((event, bytes))) = event::decode(events) {
            events = &events[bytes..];
            let (site, class, depth, length) = match event {
                Event::Entry { method } | Event::EntryOn { method, .. } | Event::EntryInit { method, .. } => {
                    stack.0.push(method);
                    continue;
                }
                Event::Exit { method } | Event::ExitThrow { method, .. } => {
                    stack.left(method);
                    continue;
                }
                Event::Switch { .. } => {
                    stack.0.clear();
                    continue;
                }
                Event::Counted { site, class, objects, units } => {
                    let made = places.entry(Place { site, class, depth: 0, frames: stack.frames() }).or_default();
                    made.objects += u64::from(objects);
                    made.bytes.iter_mut().for_each(|sum| *sum += COUNTED_UNIT * u64::from(units));
                    continue;
                }
                Event::New { site, class, .. } => (site, class, 0, None),
                Event::NewArray { site, depth, length, .. } => (site, ObjectHash::NULL, depth, Some(length)),
                Event::Made { class, length, .. } => (SiteId(0), class, 0, u32::try_from(length).ok()),
                Event::MadeAt { site, class, length, .. } => (site, class, 0, u32::try_from(length).ok()),
                Event::Ticket(_)
                | Event::SuperCall { .. }
                | Event::Leaf { .. }
                // Allocated some time ago.
                | Event::Found { .. }
                | Event::PutField { .. }
                | Event::PutStatic { .. }
                | Event::PutElement { .. }
                | Event::PutElements { .. }
                | Event::Throw { .. }
                | Event::Handle { .. }
                | Event::Used { .. } => continue,
            };
            let made = places.entry(Place { site, class, depth, frames: stack.frames() }).or_default();
            made.objects += 1;
            if let (Some(length), Some(layout)) = (length, layout) {
                for (sum, element) in made.bytes.iter_mut().zip(["B", "S", "I", "J"]) {
                    *sum += array_bytes(layout, element, length);
                }
            }
        }
        let mut counted = lock(&self.counted);
        let is_full = counted.places.len() >= MOST_PLACES;
        for (place, made) in places {
            let sum = match counted.places.entry(place) {
                Entry::Occupied(sum) => sum.into_mut(),
                Entry::Vacant(sum) if !is_full => sum.insert(Made::default()),
                Entry::Vacant(_) => {
                    counted.others += made.objects;
                    continue;
                }
            };
            sum.objects += made.objects;
            sum.bytes.iter_mut().zip(made.bytes).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Allocations since the last call.
    fn report(&self, rows: usize) -> Allocations {
        let counted = std::mem::take(&mut *lock(&self.counted));
        let now = Instant::now();
        let last = lock(&self.last).replace(now);
        let mut names = lock(&self.names);
        names.read();
        let (classes, stacks) = (lock(&self.classes), lock(&self.stacks));
        let mut sums: FxHashMap<(String, String, String), (u64, u64)> = FxHashMap::default();
        let mut report = Allocations {
            time_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64),
            interval_ms: last.map_or(0, |last| now.duration_since(last).as_millis().try_into().unwrap_or(u32::MAX)),
            objects: counted.others,
            ..Allocations::default()
        };
        for (place, made) in counted.places {
            // Of a stack, the site of its innermost frame, and the callers.
            let (site, mut callers) = match place.site.0.checked_sub(STACK) {
                None => (place.site, None),
                Some(stack) => {
                    let (caller, site) = stacks.get(stack as usize).copied().unwrap_or((0, SiteId(0)));
                    (site, Some(caller))
                }
            };
            let told = names.site(site);
            let descriptor = match classes.get(&place.class.0) {
                Some((_, descriptor)) => descriptor.to_string(),
                None => {
                    told.as_ref().and_then(|told| told.descriptor.get(place.depth.into()..)).unwrap_or("?").to_owned()
                }
            };
            let bytes = match element_shift(&descriptor, self.layout.get()) {
                Some(shift) => made.bytes[shift],
                None => made.objects * classes.get(&place.class.0).map_or(0, |(size, _)| u64::from(*size)),
            };
            report.objects += made.objects;
            report.bytes += bytes;
            let context = match callers.as_mut() {
                None => names.callers(&place.frames, told.as_ref().map(|told| told.method)),
                Some(caller) => {
                    let chain = std::iter::from_fn(|| {
                        let (next, site) = stacks.get(*caller as usize).copied().filter(|(_, site)| site.0 != 0)?;
                        *caller = next;
                        names.site(site)
                    });
                    chain.take(CALLERS).map(|told| told.text).collect::<Vec<_>>().join(";")
                }
            };
            let site = told.map(|told| told.text).unwrap_or_default();
            let sum = sums.entry((readable(&descriptor), site, context)).or_default();
            sum.0 += made.objects;
            sum.1 += bytes;
        }
        report.sites = sums
            .into_iter()
            .map(|((class, site, context), (objects, bytes))| Site { class, site, context, objects, bytes })
            .collect();
        report.sites.sort_by(|a, b| (b.bytes, b.objects).cmp(&(a.bytes, a.objects)).then_with(|| a.site.cmp(&b.site)));
        report.sites.truncate(rows);
        report
    }
}

/// The size of an array in bytes.
fn array_bytes(layout: &ArrayLayout, element: &str, length: u32) -> u64 {
    let of = |table: &std::collections::BTreeMap<String, u32>| table.get(element).copied().map_or(0, u64::from);
    let bytes = of(&layout.base_offset) + of(&layout.index_scale) * u64::from(length);
    bytes.next_multiple_of(u64::from(layout.object_alignment.max(1)))
}

/// For an array class: log2 of the element size.
fn element_shift(descriptor: &str, layout: Option<&ArrayLayout>) -> Option<usize> {
    let element = descriptor.strip_prefix('[')?;
    let letter = match element.chars().next()? {
        '[' | 'L' => "L".to_owned(),
        letter => letter.to_string(),
    };
    let scale = layout.and_then(|layout| layout.index_scale.get(&letter)).copied().unwrap_or(4);
    Some(scale.trailing_zeros().min(3) as usize)
}

/// The type of a descriptor in Java syntax.
fn readable(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len() - element.len();
    let name = match element {
        "Z" => "boolean",
        "B" => "byte",
        "C" => "char",
        "S" => "short",
        "I" => "int",
        "J" => "long",
        "F" => "float",
        "D" => "double",
        other => other.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(other),
    };
    name.replace('/', ".") + &"[]".repeat(dimensions)
}

/// Description of a site in a report.
struct Told {
    text: String,
    descriptor: String,
    method: MethodId,
}

impl Names {
    /// Decodes the tables added since the last call.
    fn read(&mut self) {
        let fresh = std::mem::take(&mut self.raw);
        if !fresh.is_empty() {
            let mut tables = std::mem::take(&mut self.tables);
            tables.extend(fresh.iter().filter_map(|raw| NamesTable::decode(raw).ok()));
            // Tables may come one per class.
            self.tables = NamesTable::join(tables);
            self.tables.sort_by_key(|table| table.artifact.base);
        }
    }

    /// The only table that may contain an id.
    fn table(&self, id: u32) -> Option<&NamesTable> {
        let after = self.tables.partition_point(|table| table.artifact.base <= id);
        self.tables.get(after.checked_sub(1)?)
    }

    fn site(&self, id: SiteId) -> Option<Told> {
        let table = self.table(id.0)?;
        let site = table.site(id)?;
        let method = table.method_text(site.method)?;
        Some(Told {
            text: if site.line == 0 { method } else { format!("{method}:{}", site.line) },
            descriptor: table.str(site.descriptor).to_owned(),
            method: table.method_id(site.method),
        })
    }

    /// The callers of the site's method.
    fn callers(&self, frames: &[MethodId; FRAMES], of: Option<MethodId>) -> String {
        let known: Vec<MethodId> = frames.iter().copied().take_while(|method| method.0 != 0).collect();
        let above = of.and_then(|of| known.iter().position(|method| *method == of)).map_or(0, |place| place + 1);
        let text = |method: &MethodId| {
            let table = self.table(method.0)?;
            table.method_text(table.method_index(*method)? as u32)
        };
        let callers = known[above..].iter().take(CALLERS);
        callers
            .map(|method| text(method).unwrap_or_else(|| format!("method {:x}", method.0)))
            .collect::<Vec<_>>()
            .join(";")
    }
}

#[cfg(test)]
mod tests {
    use et_format::event::encode;
    use et_names::{Artifact, ArtifactKind, ClassNames, EventSet, MethodNames, SiteNames};

    use super::*;

    fn table() -> NamesTable {
        let artifact = Artifact {
            hash: 1,
            base: 100,
            name: "app.jar".into(),
            kind: ArtifactKind::Application,
            events: EventSet::ALL,
        };
        let method = |name: &str| MethodNames { name: name.into(), descriptor: "()V".into(), access: 8, line: 1 };
        let site = |descriptor: &str, line| SiteNames { method: 1, descriptor: descriptor.into(), dimensions: 0, line };
        let mut table = NamesTable::new(artifact);
        table.push(&ClassNames {
            name: "shop/Till".into(),
            methods: vec![method("main"), method("pay"), method("<init>")],
            sites: vec![site("Lshop/Coin;", 7), site("[J", 8)],
            ..ClassNames::default()
        });
        table
    }

    #[test]
    fn what_is_made_is_told_by_class_site_and_callers() {
        let rates = Rates::default();
        let scales = [("B", 1), ("S", 2), ("I", 4), ("J", 8), ("L", 4)];
        let table_of = |f: fn(u32) -> u32| scales.iter().map(|(name, scale)| ((*name).to_owned(), f(*scale))).collect();
        rates.layout(&ArrayLayout {
            base_offset: table_of(|_| 16),
            index_scale: table_of(|scale| scale),
            object_alignment: 8,
        });
        rates.class(&ClassRecord {
            class: ObjectHash(9),
            instance_size: 24,
            signature: "Lshop/Coin;".into(),
            ..ClassRecord::default()
        });
        rates.names(&table().encode());
        let (main, pay, init) = (MethodId(100), MethodId(101), MethodId(102));
        let mut events = Vec::new();
        for event in [
            Event::Entry { method: main },
            Event::Entry { method: pay },
            Event::Entry { method: init },
            Event::New { site: SiteId(100), object: ObjectHash(1), class: ObjectHash(9), known: false },
            Event::Exit { method: init },
            Event::NewArray { depth: 0, site: SiteId(101), object: ObjectHash(2), length: 3 },
            Event::Exit { method: pay },
        ] {
            encode(&event, &mut events);
        }
        // No monitor is watching.
        rates.count(&events);
        assert_eq!(rates.report(10).objects, 0);
        rates.switch(true);
        rates.count(&events);
        rates.count(&events);
        let report = rates.report(10);
        assert_eq!((report.objects, report.bytes), (4, 2 * 24 + 2 * 40));
        let rows: Vec<_> = report
            .sites
            .iter()
            .map(|site| (&site.class[..], &site.site[..], &site.context[..], site.objects))
            .collect();
        assert_eq!(
            rows,
            [("long[]", "shop.Till.pay:8", "shop.Till.main", 2), ("shop.Coin", "shop.Till.pay:7", "shop.Till.main", 2)]
        );
        assert_eq!(rates.report(10).objects, 0, "it begins anew");
    }
}
