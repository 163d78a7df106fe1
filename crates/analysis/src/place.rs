//! Rows of objects by the place where they were made.

use et_names::SiteId;
use et_reader::made_in::{Made, MadeIn, Places};
use et_reader::model::ContextId;
use et_reader::naming::Naming;
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::AllocKind;
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

/// The columns of a row that determine where its object was allocated. The context matters only if there is no site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    site: SiteId,
    class: TypeId,
    without_site: Option<(ContextId, AllocKind)>,
}

impl Spot {
    /// The columns that [`Spot::of`] reads.
    pub const fn columns() -> Columns {
        Columns::SITE.and(Columns::CLASS).and(Columns::CONTEXT).and(Columns::KIND)
    }

    /// Reads a row.
    pub fn of(rows: &Rows, row: usize) -> Self {
        let without_site = (rows.site[row].0 == 0).then(|| (rows.context[row], rows.kind[row]));
        Self { site: rows.site[row], class: rows.class[row], without_site }
    }

    /// Determines the place.
    pub fn place(self, places: &mut Places<'_>, population: &Population) -> (MadeIn, TypeId) {
        let place = match self.without_site {
            None => MadeIn::Site(self.site),
            Some((context, kind)) => {
                let made = Made { kind, site: self.site, ty: self.class };
                places.in_context(made, context, &population.contexts, &population.types)
            }
        };
        (place, self.class)
    }
}

/// Merges values by spot into values by place.
pub(crate) fn by_place<T: Default>(
    spots: FxHashMap<Spot, T>,
    population: &Population,
    naming: Naming<'_>,
    merge: impl Fn(&mut T, T),
) -> FxHashMap<(MadeIn, TypeId), T> {
    let mut places = Places::new(naming);
    let mut sums: FxHashMap<(MadeIn, TypeId), T> = FxHashMap::default();
    for (spot, more) in spots {
        merge(sums.entry(spot.place(&mut places, population)).or_default(), more);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::diff::{Differ, Show, Side};
    use crate::testing::{report_of, summarize};
    use crate::{Labels, escape, pretenure, profile, summary};
    use et_format::event::{Event, ObjectHash};
    use et_names::MethodId;
    use et_reader::source::{Reading, Source};
    use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
    use et_reader::{Trace, TraceFile};

    const BASE: u32 = 5_000_000;
    const OBJECT: u32 = 0x10;
    const PAGE: u32 = 0x12;
    const BYTES: u32 = 0x13;

    /// A program that clones a page and puts a string together, a hundred times each, and keeps the last page.
    fn cloning() -> Source {
        let mut builder = TraceBuilder::new();
        let jdk = [
            class("java/lang/Object", "", &["<init> ()V"]),
            class("java/lang/Class", "java/lang/Object", &[]),
            class("java/lang/StringConcatHelper", "java/lang/Object", &["static newArray ()[B"]),
        ];
        builder.names(&table("jdk", 1, &jdk));
        let page = class("shop/Page", "java/lang/Object", &["static main ()V", "clone ()Ljava/lang/Object;"])
            .with_fields(&["static last Lshop/Page;"]);
        builder.names(&table("shop.jar", BASE, &[page]));
        builder.loaded_classes(&[
            (OBJECT, 16, "Ljava/lang/Object;"),
            (0x11, 0, "Ljava/lang/Class;"),
            (PAGE, 24, "Lshop/Page;"),
            (BYTES, 0, "[B"),
        ]);
        builder.first_thread(1, "main", Vec::new());
        let [new_array, main, clone] = [2, BASE, BASE + 1].map(MethodId);
        let mut events = vec![Event::Entry { method: main }];
        for number in 0..100 {
            let made = |first: u32, class: u32, length| Event::Made {
                object: ObjectHash(first + number),
                class: ObjectHash(class),
                length,
                fresh: true,
                constant: false,
            };
            events.extend([Event::Entry { method: clone }, made(0x1000, PAGE, -1), Event::Exit { method: clone }]);
            events.push(Event::PutStatic { field: et_names::FieldRefId(BASE), target: ObjectHash(0x1000 + number) });
            events.extend([
                Event::Entry { method: new_array },
                made(0x2000, BYTES, 40),
                Event::Exit { method: new_array },
            ]);
        }
        builder.events(1, 3, &events);
        Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap().into()
    }

    #[test]
    fn no_object_is_without_a_place() {
        const CLONED: &str = "shop.Page.clone, by clone()";
        const PUT_TOGETHER: &str = "java.lang.StringConcatHelper.newArray, by string concatenation";
        let (source, reading) = (cloning(), Reading::default());
        let population = et_lives::population(&source, None, reading).unwrap();
        let labels = Labels::of(&source, &population);
        let allocated = 100 * (24 + 56) + 4 * 120;

        let summary = summarize(&source, reading, 10).unwrap();
        let sites: BTreeMap<&str, _> = summary.sites.iter().map(|line| (line.site.as_str(), line)).collect();
        assert_eq!((sites[CLONED].amount.bytes, sites[CLONED].ty.as_str()), (2400, "shop.Page"));
        assert_eq!((sites[CLONED].origin, sites[CLONED].caller.as_deref()), (summary::Origin::Program, None));
        assert_eq!(sites[PUT_TOGETHER].caller.as_deref(), Some("shop.Page.main"));
        assert!(sites.contains_key("(by loading a class)"));
        assert_eq!(summary.sites.iter().map(|line| line.amount.bytes).sum::<u64>(), allocated, "all of it");
        let lifetimes = summary.lifetimes.as_ref().unwrap();
        assert!(lifetimes.sites.iter().any(|line| line.site.as_deref() == Some(CLONED)));
        assert!(summary::render(&summary).contains(CLONED));

        let report = report_of(&source, reading, 10);
        let line = report.lifetimes.sites.iter().find(|line| line.name == CLONED).unwrap();
        assert_eq!((line.made.objects, line.detail.as_str()), (100, "shop.Page"));
        let line = report.lifetimes.sites.iter().find(|line| line.name == PUT_TOGETHER).unwrap();
        assert_eq!(line.detail, "byte[] for shop.Page.main");
        let frames = [&report.flames.by_site, &report.flames.by_context].map(|flame| &flame.names);
        assert!(frames[0].iter().any(|frame| frame.name == format!("shop.Page  {CLONED}")));

        let cells = profile::profile(&population, labels.naming(), 0).unwrap().cells;
        let bytes = |text: &str| {
            let of = cells.iter().filter(|(origin, _)| labels.made_in(origin.place) == text);
            of.map(|(_, cell)| cell.allocated.bytes).sum::<u64>()
        };
        assert_eq!((bytes(CLONED), bytes(PUT_TOGETHER)), (2400, 5600));

        let mut differ = Differ::default();
        differ.add(Side::Before, &source, &population).unwrap();
        differ.add(Side::After, &open_empty(), &et_lives::population(&open_empty(), None, reading).unwrap()).unwrap();
        let diff = differ.diff(&Show { least_share: 0.0, top: 10, matching: None });
        let methods: Vec<&str> = diff.sites.lines.iter().filter_map(|line| line.method.as_deref()).collect();
        assert!(methods.contains(&"shop.Page.clone") && methods.contains(&"java.lang.StringConcatHelper.newArray"));

        let escaped = escape::escape(&population, labels, 10).unwrap();
        assert!(escaped.sites.iter().any(|line| line.place.site == CLONED));
        let kept = pretenure::pretenuring(&population, labels, vec![1000], 10).unwrap();
        assert!(kept.sites.iter().any(|line| line.place.site == PUT_TOGETHER));
    }

    fn open_empty() -> Source {
        Trace::from_file(TraceFile::from_bytes(TraceBuilder::new().finish(), None).unwrap()).unwrap().into()
    }
}
