//! One object: what it holds and who holds it at a moment, and its life.

use et_analysis::heap::{Matching, paths};
use et_analysis::object::{self, Around, Known, Life, ObjectError, Query, StayLine};
use et_names::shell::quoted;
use et_reader::model::Node;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{named, to_value};
use crate::moments::{node, object_id};
use crate::opened::{Moment, Opened};
use crate::params::{Params, Refused};

/// Slots and holders that are listed.
const LISTED: usize = 500;
/// References of a life that are looked at: an array that every object passes through has as many as there are objects.
const OF_LIFE: usize = 1 << 13;
/// Marks of a life: those at its beginning and at its end, half of them each.
const MARKS: usize = 200;
/// Ways from outside.
const PATHS: usize = 3;
/// Levels of dominators.
const ABOVE: usize = 64;

/// A point of a life.
#[derive(Debug, Serialize)]
struct Mark {
    /// The first moment that shows it.
    tick: u64,
    bytes: Option<u64>,
    nanos: Option<u64>,
    kind: &'static str,
    text: String,
}

/// What a slot holds, or who holds the object.
#[derive(Debug, Serialize)]
struct Held<'l> {
    slot: &'l str,
    other: Option<&'l et_analysis::Named>,
    since: Option<&'l object::Point>,
}

fn held(stay: &StayLine) -> Held<'_> {
    Held { slot: &stay.slot, other: stay.other.as_ref(), since: stay.from.as_ref() }
}

pub(crate) fn answer(trace: &'static Opened, params: &Params) -> Result<Value, Refused> {
    let text = params.get("id").ok_or_else(|| Refused::Wrong("id is missing: which object?".to_owned()))?;
    let (id, tick) = (object_id(text)?, params.tick("at")?);
    let moment = trace.moment(tick)?;
    let node = node(&moment, id);
    let rows = &moment.resident.rows;
    let of = |row: usize| Known { number: rows.number[row], death_tick: rows.death_tick[row] };
    let known = node.map(|node| of(node.0 as usize));
    let query = Query { id, known, top: 20, most: Some(OF_LIFE), ..Query::default() };
    let found = object::life(trace.source(), trace.population(), trace.objects(), trace.references(), &query);
    let life = found.map_err(|error| match error {
        ObjectError::Rows(error) => Refused::from(error),
        error @ ObjectError::None(_) => Refused::None(error.to_string()),
        error @ ObjectError::Query(_) => Refused::Wrong(error.to_string()),
    })?;
    let clock = moment.tick;
    // Of what is not alive nothing is held.
    let around = match node {
        None => Around::default(),
        Some(node) => {
            let number = rows.number[node.0 as usize];
            let (source, population) = (trace.source(), trace.population());
            let statics = moment.resident.snapshot.statics().iter().filter(|(_, mirror, _)| *mirror == Some(node));
            let statics = statics.map(|&(field, ..)| field).collect();
            object::around(source, population, trace.objects(), trace.references(), (number, clock), statics, LISTED)?
        }
    };
    let slots: Vec<Held<'_>> = around.slots.iter().map(held).collect();
    let holders: Vec<Held<'_>> = around.holders.iter().map(held).collect();
    let marks = marks(&life);
    let previous = marks.iter().map(|mark| mark.tick).filter(|&mark| mark < clock).max();
    let next = marks.iter().map(|mark| mark.tick).filter(|&mark| mark > clock).min();
    let more_marks = marks.len().saturating_sub(MARKS);
    let (first, last) = marks.split_at(marks.len().min(MARKS / 2));
    let last = &last[last.len() - last.len().min(MARKS / 2)..];
    let shown: Vec<&Mark> = first.iter().chain(last).collect();
    let mut value = json!({
        "object": to_value(&life.object)?,
        "threadName": life.thread_name,
        "isAlive": node.is_some(),
        "retainedBytes": node.map(|node| moment.dominance.retained[node.0 as usize]),
        "dominates": node.map(|node| moment.dominance.children.of(node.0).count()),
        "slots": to_value(&slots)?,
        "moreSlots": around.more_slots,
        "holders": to_value(&holders)?,
        "moreHolders": around.more_holders,
        "paths": node.map(|node| ways(&moment, node)).transpose()?,
        "dominators": node.map(|node| above(&moment, node)).unwrap_or_default(),
        "marks": to_value(&shown)?,
        "moreMarks": more_marks,
        "previous": previous,
        "next": next,
        "leftOut": life.left_out,
        "life": object::render(&life, &query),
        "command": format!("et-trace object {} {text}", quoted(trace.path())),
    });
    value["path"] = value["paths"].get(0).cloned().unwrap_or(Value::Null);
    value["pathCommand"] =
        format!("et-trace heap {} --at {} --path-to {text}", quoted(trace.path()), named(trace, tick)).into();
    Ok(value)
}

/// The shortest ways to it from outside.
fn ways(moment: &Moment, node: Node) -> Result<Value, Refused> {
    to_value(&paths::to_one(&moment.resident.snapshot, node, &Matching::all(), PATHS))
}

/// What dominates it, the nearest first.
fn above(moment: &Moment, node: Node) -> Vec<Value> {
    let snapshot = &moment.resident.snapshot;
    let up = |&at: &u32| Some(moment.dominance.tree.above(at)).filter(|&above| (above as usize) < snapshot.len());
    let line = |at: u32| {
        json!({
            "id": format!("{:x}", snapshot.object(Node(at)).id.0),
            "class": snapshot.class_text(Node(at)),
            "retainedBytes": moment.dominance.retained[at as usize],
        })
    };
    std::iter::successors(up(&node.0), up).take(ABOVE).map(line).collect()
}

/// All that happened to it, in order.
fn marks(life: &Life) -> Vec<Mark> {
    let object = &life.object;
    let thread = life.thread_name.as_deref().unwrap_or("an unknown thread");
    let born = &object.born;
    let made = if life.was_there {
        Mark { tick: 0, bytes: None, nanos: None, kind: "made", text: "was there when tracing began".to_owned() }
    } else {
        let text = format!("made by {thread} at {}", object.site);
        Mark { tick: born.tick + 1, bytes: Some(born.bytes), nanos: born.nanos, kind: "made", text }
    };
    let mut marks = vec![made];
    let of = |stay: &StayLine| match &stay.other {
        Some(other) => format!("{} of {} ({})", stay.slot, other.id, other.class),
        None => format!("static field {}", stay.slot),
    };
    let mut add = |point: &object::Point, kind, text: String| {
        let by = point.context.first().map(|method| format!(" in {method}")).unwrap_or_default();
        let by = point.thread_name.as_ref().map(|thread| format!("{by}, {thread}")).unwrap_or(by);
        let (bytes, nanos) = (Some(point.bytes), point.nanos);
        marks.push(Mark { tick: point.tick + 1, bytes, nanos, kind, text: text + &by });
    };
    for stay in &life.holders {
        if let Some(from) = &stay.from {
            add(from, "stored", format!("stored into {}", of(stay)));
        }
        if let Some(to) = &stay.to {
            let how = match stay.ended {
                Some("overwritten") => "overwritten in",
                Some("cleared") => "cleared from",
                _ => "gone with",
            };
            add(to, "cleared", format!("{how} {}", of(stay)));
        }
    }
    for handed in &life.handed {
        add(&handed.first, "handed", format!("first stored by {}", handed.thread_name));
    }
    let target = |stay: &StayLine| {
        stay.other.as_ref().map_or_else(String::new, |other| format!("{} ({})", other.id, other.class))
    };
    for stay in life.slots.iter().flat_map(|slot| &slot.held) {
        if let Some(from) = &stay.from {
            add(from, "holds", format!("{} holds {}", stay.slot, target(stay)));
        }
        if let Some(to) = stay.to.as_ref().filter(|_| stay.ended != Some("origin died")) {
            add(to, "drops", format!("{} no longer holds {}", stay.slot, target(stay)));
        }
    }
    if let Some(last_use) = object.last_use_tick.filter(|last_use| *last_use > born.tick) {
        let text = "used for the last time".to_owned();
        marks.push(Mark { tick: last_use + 1, bytes: None, nanos: None, kind: "used", text });
    }
    if let Some(died) = &object.died {
        let by = object.died_in.as_ref().map(|method| format!(": made unreachable in {method}")).unwrap_or_default();
        let (bytes, nanos) = (Some(died.bytes), died.nanos);
        marks.push(Mark { tick: died.tick + 1, bytes, nanos, kind: "died", text: format!("died{by}") });
    }
    marks.sort_by_key(|mark| mark.tick);
    marks
}
