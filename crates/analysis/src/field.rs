//! A field over the whole run: who stored into it, what, how often, and how long it stayed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use et_names::units::{bytes, counted, number, percent};
use et_names::{FieldId, MethodId};
use et_reader::population::{Columns, Population};
use et_reader::record::{ObjectId, ThreadId};
use et_reader::references::{End, References, Stay, Wanted};
use et_reader::source::Source;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::fold;
use crate::labels::Labels;
use crate::named;
use crate::numbers::Numbers;
use crate::object::{self, StayLine, Teller, Within, cells, folded};
use crate::pattern::fits;
use crate::span::{QueryError, Span};
use crate::table::{more, table};

/// Stays of one object that are listed at most.
const MOST: usize = 1 << 18;

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The field as reports name it, with its class; `*` is any text.
    pub field: String,
    /// Only that of this object.
    pub of: Option<ObjectId>,
    /// Only references that were there in this range.
    pub span: Span,
    /// Maximum number of writers, classes and stays to list.
    pub top: usize,
    /// List everything.
    pub full: bool,
}

/// Why nothing can be said of a field.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    #[error(
        "no field {field} ever held a reference: name it with its class, as java.util.HashMap.table; * is any text{}",
        near(.alike)
    )]
    None { field: String, alike: Vec<String> },
    #[error("there is no object {0:x}: ids are hexadecimal, as in texts and in `et-trace objects`")]
    NoObject(u64),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Rows(#[from] io::Error),
}

fn near(alike: &[String]) -> String {
    if alike.is_empty() { String::new() } else { format!(" (there are {})", alike.join(", ")) }
}

/// Something that stored into the field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// The method; `None`: it was there when tracing began, or no method ran.
    pub method: Option<String>,
    pub thread_name: Option<String>,
    /// Number of references that it stored.
    pub stores: u64,
}

/// Number of references that stayed that long, by bytes allocated meanwhile: from that power of two to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lasting {
    pub from_bytes: u64,
    pub references: u64,
}

/// Result: what a field held.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// Names of the fields that fit, each with the number of its references.
    pub fields: Vec<(String, u64)>,
    /// Stores of something other than null, and references that were there when tracing began.
    pub references: u64,
    /// Objects of which the field held something; 0 of static fields.
    pub objects: u64,
    /// Objects of which it held one reference only, from the store to the end or to the object's death; `None`: several fields fit.
    pub written_once: Option<u64>,
    /// Different objects that it held.
    pub values: u64,
    /// How references ended; the rest lasts to the end of the trace.
    pub ended: BTreeMap<&'static str, u64>,
    pub lasting: Vec<Lasting>,
    /// Who stored, most often first.
    pub writers: Vec<Writer>,
    /// Number of all writers.
    pub all_writers: u64,
    /// Classes of the objects that it held, most frequent first.
    pub classes: Vec<(String, u64)>,
    /// Number of all classes.
    pub all_classes: u64,
    /// What it held in order, if one object was asked for.
    pub history: Vec<StayLine>,
    /// References that the history lacks, because there are too many.
    pub left_out: u64,
}

/// Tells what a field held over the whole run.
///
/// # Errors
/// There is no such field or object, the range cannot be told, or a table cannot be read.
pub fn field(
    source: &Source,
    population: &Population,
    references: &dyn References,
    query: &Query,
) -> Result<Field, FieldError> {
    let labels = Labels::of(source, population);
    let within = Within::new(&query.span, population)?;
    let name = |id| named::field(labels.naming(), references, id);
    let all: Vec<(FieldId, String, u64)> =
        references.fields().iter().map(|&(id, stays)| (id, name(id), stays)).collect();
    let chosen: Vec<&(FieldId, String, u64)> = all.iter().filter(|(_, name, _)| fits(&query.field, name)).collect();
    if chosen.is_empty() {
        return Err(FieldError::None { field: query.field.clone(), alike: alike(&query.field, &all) });
    }
    let asked = match query.of {
        None => None,
        Some(id) => {
            let (group, row) = object::find(population, id, None)?.ok_or(FieldError::NoObject(id.0))?;
            Some(population.groups.read(group, Columns::NUMBER)?.number[row])
        }
    };
    let mut sums = Sums::new(population);
    let wanted = Wanted {
        fields: Some(chosen.iter().map(|(id, ..)| id.0).collect()),
        of: asked.map(|number| vec![number]),
        ..Wanted::default()
    };
    references.for_each(&wanted, &mut |stay| {
        if within.has(stay) && (asked.is_none() || stay.origin == asked) {
            sums.add(stay, references, asked.is_some());
        }
    })?;
    sums.finish(source, population, references, chosen, query)
}

/// Fields of the same name in other classes, to be offered.
fn alike(pattern: &str, all: &[(FieldId, String, u64)]) -> Vec<String> {
    let last = pattern.rsplit('.').next().unwrap_or(pattern);
    let is_alike = |name: &&(FieldId, String, u64)| name.1.rsplit('.').next() == Some(last);
    let mut alike: Vec<String> = all.iter().filter(is_alike).map(|(_, name, _)| name.clone()).collect();
    alike.sort();
    alike.truncate(5);
    alike
}

/// What is counted.
struct Sums {
    references: u64,
    origins: Numbers,
    /// Of these, the ones of which a reference was replaced, or cleared.
    changed: Numbers,
    values: Numbers,
    ended: BTreeMap<&'static str, u64>,
    lasting: BTreeMap<u32, u64>,
    writers: FxHashMap<(Option<MethodId>, ThreadId), u64>,
    history: Vec<Stay>,
    left_out: u64,
    end_bytes: u64,
}

impl Sums {
    fn new(population: &Population) -> Self {
        Self {
            references: 0,
            origins: Numbers::of(population),
            changed: Numbers::of(population),
            values: Numbers::of(population),
            ended: BTreeMap::new(),
            lasting: BTreeMap::new(),
            writers: FxHashMap::default(),
            history: Vec::new(),
            left_out: 0,
            end_bytes: population.end.bytes,
        }
    }

    fn add(&mut self, stay: &Stay, references: &dyn References, is_listed: bool) {
        self.references += 1;
        self.values.insert(stay.target);
        if let Some(origin) = stay.origin {
            let is_new = self.origins.insert(origin);
            let was_replaced = matches!(stay.to, Some((_, End::Overwritten | End::Cleared)));
            if !is_new || was_replaced {
                self.changed.insert(origin);
            }
        }
        if let Some((_, how)) = stay.to {
            *self.ended.entry(how.text()).or_default() += 1;
        }
        let until = stay.to.map_or(self.end_bytes, |(to, _)| to.bytes);
        // 0 has a class of its own.
        let bits = u64::BITS - until.saturating_sub(stay.from.bytes).leading_zeros();
        *self.lasting.entry(bits).or_default() += 1;
        let method = references.contexts().get(stay.from.context).method;
        let method = (method.0 != 0).then_some(method);
        *self.writers.entry((method, stay.from.thread)).or_default() += 1;
        if is_listed {
            if self.history.len() < MOST { self.history.push(*stay) } else { self.left_out += 1 }
        }
    }

    fn finish(
        mut self,
        source: &Source,
        population: &Population,
        references: &dyn References,
        chosen: Vec<&(FieldId, String, u64)>,
        query: &Query,
    ) -> Result<Field, FieldError> {
        let labels = Labels::of(source, population);
        self.history.sort_by_key(|stay| stay.from.record);
        let others = self.history.iter().map(|stay| stay.target).collect();
        let teller = Teller::new(source, population, &*population.groups, references, others)?;
        let values = &self.values;
        let classes = fold(
            population,
            Columns::NUMBER | Columns::CLASS,
            FxHashMap::<_, u64>::default,
            |sums, rows| {
                for row in (0..rows.len).filter(|&row| values.has(rows.number[row])) {
                    *sums.entry(rows.class[row]).or_default() += 1;
                }
            },
            |mut one, other| {
                other.into_iter().for_each(|(class, count)| *one.entry(class).or_default() += count);
                one
            },
        )?;
        let mut classes: Vec<(String, u64)> =
            classes.into_iter().map(|(class, count)| (labels.class(class), count)).collect();
        classes.sort_by(|(a, one), (b, other)| (other, a).cmp(&(one, b)));
        let mut writers: Vec<Writer> = self
            .writers
            .into_iter()
            .map(|((method, thread), stores)| Writer {
                method: method.map(|method| labels.method(method)),
                thread_name: teller.thread(thread),
                stores,
            })
            .collect();
        writers.sort_by(|one, other| {
            let key = |writer: &Writer| (writer.method.clone(), writer.thread_name.clone());
            other.stores.cmp(&one.stores).then_with(|| key(one).cmp(&key(other)))
        });
        let (all_writers, all_classes) = (writers.len() as u64, classes.len() as u64);
        if !query.full {
            writers.truncate(query.top);
            classes.truncate(query.top);
        }
        let mut fields: Vec<(String, u64)> =
            chosen.into_iter().map(|(_, name, stays)| (name.clone(), *stays)).collect();
        fields.sort();
        let from = |bits: u32| if bits == 0 { 0 } else { 1 << (bits - 1) };
        let lasting = self.lasting.into_iter();
        Ok(Field {
            references: self.references,
            objects: self.origins.len(),
            written_once: (fields.len() == 1).then(|| self.origins.len() - self.changed.len()),
            values: self.values.len(),
            ended: self.ended,
            lasting: lasting.map(|(bits, references)| Lasting { from_bytes: from(bits), references }).collect(),
            writers,
            all_writers,
            classes,
            all_classes,
            history: self.history.iter().map(|stay| teller.stay(stay, Some(stay.target))).collect(),
            left_out: self.left_out,
            fields,
        })
    }
}

/// The answer first, then tables.
pub fn render(found: &Field, query: &Query) -> String {
    let mut out = String::new();
    match found.fields.as_slice() {
        [(name, _)] => _ = writeln!(out, "{name}"),
        fields => {
            let _ = writeln!(out, "{}", counted(fields.len() as u64, "field"));
            let rows: Vec<Vec<String>> =
                fields.iter().take(query.top).map(|(name, stays)| vec![number(*stays), name.clone()]).collect();
            table(&mut out, 1, &["references", "field"], &rows);
            more(&mut out, fields.len(), rows.len());
        }
    }
    let _ =
        write!(out, "\n{} to {}", counted(found.references, "reference"), counted(found.values, "different object"));
    let _ = match found.objects {
        0 => writeln!(out, ", in static fields"),
        objects => {
            let _ = write!(out, ", in {}", counted(objects, "object"));
            match found.written_once {
                Some(once) => writeln!(out, "; written once in {} of them ({})", number(once), percent(once, objects)),
                None => writeln!(out),
            }
        }
    };
    let lasting = found.references - found.ended.values().sum::<u64>();
    let mut ends: Vec<String> = [End::Overwritten, End::OriginDied, End::Cleared]
        .into_iter()
        .filter_map(|end| Some((end, *found.ended.get(end.text())?)))
        .map(|(end, count)| match end {
            End::Overwritten => format!("{} overwritten", number(count)),
            End::OriginDied => format!("{} there until the object died", number(count)),
            End::Cleared => format!("{} cleared by the collector", number(count)),
        })
        .collect();
    if lasting > 0 {
        ends.push(format!("{} there at the end", number(lasting)));
    }
    let _ = writeln!(out, "{}", ends.join(", "));
    if !found.lasting.is_empty() {
        let _ = writeln!(out, "\nhow long a reference stayed, in bytes allocated meanwhile");
        let rows: Vec<Vec<String>> = found
            .lasting
            .iter()
            .map(|Lasting { from_bytes, references }| {
                let range = match from_bytes {
                    0 => "none".to_owned(),
                    from => format!("{} to {}", bytes(*from), bytes(from * 2)),
                };
                vec![number(*references), percent(*references, found.references), range]
            })
            .collect();
        table(&mut out, 2, &["references", "share", "allocated"], &rows);
    }
    let _ = writeln!(out, "\nwho stored");
    let rows: Vec<Vec<String>> = found
        .writers
        .iter()
        .map(|writer| {
            let method = writer.method.clone().unwrap_or_else(|| "(before tracing began, or no method)".to_owned());
            vec![number(writer.stores), method, writer.thread_name.clone().unwrap_or_default()]
        })
        .collect();
    table(&mut out, 1, &["stores", "method", "thread"], &rows);
    more(&mut out, found.all_writers as usize, rows.len());
    let _ = writeln!(out, "\nwhat it held");
    let rows: Vec<Vec<String>> =
        found.classes.iter().map(|(class, count)| vec![number(*count), class.clone()]).collect();
    table(&mut out, 1, &["objects", "class"], &rows);
    more(&mut out, found.all_classes as usize, rows.len());
    if !found.history.is_empty() {
        let _ = writeln!(out, "\nin the order of the stores");
        let (first, between, last) = folded(&found.history, query.top.div_ceil(2), query.full);
        let row = |stay: &StayLine| {
            let [from, to, stored, ended] = cells(stay);
            vec![stay.other.as_ref().map(object::object).unwrap_or_default(), from, to, stored, ended]
        };
        let mut rows: Vec<Vec<String>> = first.iter().map(row).collect();
        if between > 0 {
            rows.push(vec![format!("({} more: --full)", number(between as u64))]);
        }
        rows.extend(last.iter().map(row));
        table(&mut out, 0, &["held", "from", "to", "stored by", "ended"], &rows);
    }
    if found.left_out > 0 {
        let left_out = counted(found.left_out, "more reference");
        let _ = writeln!(out, "\n{left_out} not listed: --from and --to choose a range with fewer");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::{REAL, with_references};

    #[test]
    fn fields_of_a_list() {
        let (source, population, references) = with_references(crate::heap::tests::list().finish());
        let mut out = String::new();
        for (name, of) in [("shop.Node.next", None), ("shop.Node.*", None), ("shop.Node.next", Some(ObjectId(0xa)))] {
            let query = Query { field: name.to_owned(), of, top: 20, ..Query::default() };
            let found = field(&source, &population, &*references, &query).unwrap();
            let _ = writeln!(out, "{}", render(&found, &query));
        }
        insta::assert_snapshot!(out);
        let query = Query { field: "shop.Order.next".to_owned(), top: 20, ..Query::default() };
        let error = field(&source, &population, &*references, &query).unwrap_err().to_string();
        assert!(error.ends_with("* is any text (there are shop.Node.next)"), "{error}");
        let query = Query { field: "shop.Node.next".to_owned(), of: Some(ObjectId(0x77)), ..Query::default() };
        let error = field(&source, &population, &*references, &query).unwrap_err().to_string();
        assert!(error.starts_with("there is no object 77: "), "{error}");
    }

    /// The same by going through all references.
    #[test]
    fn fields_of_a_real_program() {
        let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
        let mut all = Vec::new();
        references.for_each(&Wanted::default(), &mut |stay| all.push(*stay)).unwrap();
        let mut written_once = 0;
        for &(id, stays) in references.fields() {
            let name = named::field(source.naming(), &*references, id);
            let of: Vec<&Stay> = all.iter().filter(|stay| stay.slot == et_reader::record::Slot::Field(id)).collect();
            assert_eq!(of.len() as u64, stays);
            let query = Query { field: name.clone(), full: true, ..Query::default() };
            let found = field(&source, &population, &*references, &query).unwrap();
            if found.fields.len() > 1 {
                // Fields of one name in several classes of one name.
                continue;
            }
            let objects: BTreeSet<u64> = of.iter().filter_map(|stay| stay.origin).collect();
            let values: BTreeSet<u64> = of.iter().map(|stay| stay.target).collect();
            let once = objects.iter().filter(|&&object| {
                let stays: Vec<_> = of.iter().filter(|stay| stay.origin == Some(object)).collect();
                stays.len() == 1 && stays[0].to.is_none_or(|(_, how)| how == End::OriginDied)
            });
            assert_eq!(found.written_once, Some(once.count() as u64), "{name}");
            assert_eq!((found.references, found.objects), (stays, objects.len() as u64), "{name}");
            assert_eq!(found.values, values.len() as u64, "{name}");
            assert_eq!(found.lasting.iter().map(|lasting| lasting.references).sum::<u64>(), stays);
            assert_eq!(found.writers.iter().map(|writer| writer.stores).sum::<u64>(), stays);
            assert_eq!(found.classes.iter().map(|(_, count)| count).sum::<u64>(), found.values);
            written_once += found.written_once.unwrap_or(0);
        }
        assert!(written_once > 100, "{written_once}");
    }
}
