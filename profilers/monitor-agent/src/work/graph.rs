//! The graph of all reachable objects: sent to a client (`ETRG`), or written to the log.
//!
//! Objects without an id get one for the duration of the walk, in their tags. Meanwhile the VM needs some fifty bytes
//! of native memory for each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use et_ddm::message::Failure;
use et_ddm::ours::HeapLogged;
use et_ddm::wire::Writer;
use et_ddm::{Chunk, ChunkType, Message};
use et_jvm::env::Env;
use et_jvm::jvmti::JvmtiError;
use et_trcxml::Element;

use super::failed;
use crate::heap::share;
use crate::hub::{Asker, Note};
use crate::state::{Monitor, say};
use crate::tags::{self, ClassTag};
use crate::xml::XmlLog;
use crate::{classes, time};

const ETRG: ChunkType = ChunkType(*b"ETRG");
/// Size of a chunk in bytes.
const PIECE: usize = 64 << 10;
/// The most references that are kept: some 1.6 GB.
const MOST_EDGES: usize = 64 << 20;

/// An object in the graph.
#[derive(Clone, Copy, Debug)]
struct Node {
    id: u64,
    class: u64,
    size: u64,
    is_array: bool,
    /// Whether it got its id for this walk.
    is_fresh: bool,
}

/// A reference; from 0: a root.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u64,
    to: u64,
    kind: u8,
    index: u32,
}

/// Kinds of references, as JVMTI numbers them: those that have an index are fields and elements.
const FIELDS: [u8; 2] = [2, 8];
const ELEMENT: u8 = 3;
const FIRST_ROOT: u8 = 21;

impl Edge {
    fn is_root(&self) -> bool {
        self.from == 0 || self.kind >= FIRST_ROOT
    }

    /// Element for the log.
    fn element(&self, dump: u32) -> String {
        if self.is_root() {
            let root = Element::new("gcRoot").number("objIdRef", self.to).text("type", root_type(self.kind));
            return root.number("heapDumpIdRef", dump).end();
        }
        let reference = Element::new("objectReference")
            .number("srcIdRef", self.from)
            .number("targetIdRef", self.to)
            .number("heapDumpIdRef", dump);
        match self.kind {
            ELEMENT => reference.number("index", self.index),
            kind if FIELDS.contains(&kind) => reference.number("fieldIdRef", self.index),
            _ => reference,
        }
        .end()
    }
}

#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    bytes: u64,
    is_cut: bool,
    pause_us: u32,
}

fn too_many() -> String {
    format!("the heap has more than {MOST_EDGES} references")
}

/// A class may be loaded between the moment at which all have numbers and the walk. The next walk knows it.
const TRIES: usize = 5;

/// Walks the heap, until each object has a class that is known.
fn collect(monitor: &Monitor, env: Env) -> Result<Graph, String> {
    let mut fresh = rustc_hash::FxHashSet::default();
    for _ in 0..TRIES {
        let mut graph = walk(monitor, env).map_err(|error| error.to_string())?;
        // Numbers of walks before this one are not in the log either.
        graph.nodes.iter_mut().for_each(|node| node.is_fresh |= fresh.contains(&node.id));
        if graph.nodes.iter().all(|node| node.class != 0) {
            return Ok(graph);
        }
        fresh.extend(graph.nodes.iter().filter(|node| node.is_fresh).map(|node| node.id));
    }
    Err("the program keeps loading classes: try again".to_owned())
}

/// Walks the heap. Objects that have no number get one.
fn walk(monitor: &Monitor, env: Env) -> Result<Graph, JvmtiError> {
    // Each class has a number before the walk.
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        for class in monitor.jvmti.loaded_classes(env).unwrap_or_default() {
            classes::tag_of(monitor, env, class);
            env.delete_local(class);
        }
    });
    let mut graph = Graph::default();
    let mut seen = rustc_hash::FxHashSet::default();
    let _one = tags::tagging();
    let start = Instant::now();
    let walked = share::walk(|| {
        monitor.jvmti.follow_references(|edge| {
            let is_fresh = *edge.tag == 0;
            if is_fresh {
                *edge.tag = tags::fresh() as i64;
            }
            let id = tags::of_tag(*edge.tag);
            if seen.insert(id) {
                let class = ClassTag::read(edge.class_tag).map_or(0, |tag| tag.id);
                graph.nodes.push(Node { id, class, size: edge.size, is_array: edge.length >= 0, is_fresh });
                graph.bytes += edge.size;
            }
            if graph.edges.len() < MOST_EDGES {
                let from = tags::of_tag(edge.referrer_tag);
                graph.edges.push(Edge { from, to: id, kind: edge.kind as u8, index: edge.index });
            } else {
                graph.is_cut = true;
            }
            true
        })
    });
    graph.pause_us = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
    walked.map(|()| graph)
}

/// Takes the numbers away that were given for the walk.
fn forget(monitor: &Monitor, graph: &Graph) {
    let fresh: rustc_hash::FxHashSet<u64> =
        graph.nodes.iter().filter(|node| node.is_fresh).map(|node| node.id).collect();
    let _one = tags::tagging();
    let _ = monitor.jvmti.tagged_objects(|tag| {
        if fresh.contains(&tags::of_tag(*tag)) {
            *tag = 0;
        }
    });
}

/// Sends it, and then the totals as the reply.
pub fn send(monitor: &Monitor, env: Env, asker: &Asker, keeps_ids: bool) {
    let at = time::now();
    let graph = match collect(monitor, env) {
        Ok(graph) => graph,
        Err(why) => return monitor.hub.reply(asker, Some(failed(Failure::FAILED, why))),
    };
    if let Some(xml) = &monitor.xml {
        if let Err(why) = write(xml, &graph, "asked for by a monitor", at) {
            say(&why);
        }
    } else if !keeps_ids {
        forget(monitor, &graph);
    }
    if graph.is_cut {
        let why = format!("{}; use HPDU", too_many());
        return monitor.hub.reply(asker, Some(failed(Failure::FAILED, why)));
    }
    let mut is_there = names(monitor, env, asker);
    let mut pieces = |kind: u8, size: usize, count: usize, write: &dyn Fn(&mut Writer, usize)| {
        let mut at = 0;
        while at < count && is_there {
            let end = count.min(at + PIECE / size);
            let mut out = Writer::default();
            out.u1(kind).count(end - at);
            (at..end).for_each(|index| write(&mut out, index));
            is_there = put(monitor, asker, out.finish());
            at = end;
        }
    };
    pieces(2, 24, graph.nodes.len(), &|out, index| {
        let node = graph.nodes[index];
        out.u8(node.id).u8(node.class).u8(node.size);
    });
    let (roots, references): (Vec<Edge>, Vec<Edge>) = graph.edges.iter().partition(|edge| edge.is_root());
    pieces(3, 9, roots.len(), &|out, index| _ = out.u8(roots[index].to).u1(roots[index].kind));
    pieces(4, 21, references.len(), &|out, index| {
        let edge = references[index];
        out.u8(edge.from).u8(edge.to).u1(edge.kind).u4(edge.index);
    });
    let mut out = Writer::default();
    out.u8(graph.nodes.len() as u64).u8(graph.bytes).u8(references.len() as u64).u8(roots.len() as u64);
    let totals = Chunk::new(ETRG, out.u4(graph.pause_us).finish());
    monitor.hub.reply(asker, Some(Message::Other(totals)));
}

fn put(monitor: &Monitor, asker: &Asker, data: Vec<u8>) -> bool {
    let is_there = asker.line.has_room();
    if is_there {
        monitor.hub.put(Note::To(asker.line.clone(), Message::Other(Chunk::new(ETRG, data))));
    }
    is_there
}

/// Sends the names of all classes.
fn names(monitor: &Monitor, env: Env, asker: &Asker) -> bool {
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        let classes = monitor.jvmti.loaded_classes(env).unwrap_or_default();
        classes.chunks(500).all(|classes| {
            let mut out = Writer::default();
            out.u1(1).count(classes.len());
            for class in classes {
                out.u8(classes::tag_of(monitor, env, *class).id).text(&classes::name(monitor, *class));
            }
            put(monitor, asker, out.finish())
        })
    })
}

fn root_type(kind: u8) -> &'static str {
    match kind {
        21 => "JNI_GLOBAL",
        22 => "SYSTEM_CLASS",
        23 => "MONITOR",
        24 => "STACK_LOCAL",
        25 => "JNI_LOCAL",
        26 => "THREAD",
        _ => "OTHER",
    }
}

/// Writes all that can be reached into the log. Why that could not be done, or not to the end.
pub fn log(monitor: &Monitor, env: Env, xml: &XmlLog, name: &str) -> Result<HeapLogged, String> {
    let at = time::now();
    let graph = collect(monitor, env)?;
    write(xml, &graph, name, at)
}

/// The graph as elements. When this comes back they are in the file.
fn write(xml: &XmlLog, graph: &Graph, name: &str, at: Duration) -> Result<HeapLogged, String> {
    static DUMPS: AtomicU32 = AtomicU32::new(1);
    // What does not fit in memory is written during the walk; errors are reported at the end.
    let mut why = None;
    let mut write_much = || {
        if xml.is_full() {
            why = xml.flush().or(why.take());
        }
    };
    // Objects that the log does not know yet.
    for node in graph.nodes.iter().filter(|node| node.is_fresh) {
        xml.define_object(node.id, node.class, Some(node.size), node.is_array);
        write_much();
    }
    let dump = DUMPS.fetch_add(1, Ordering::Relaxed);
    xml.put(&Element::new("heapDumpDef").number("heapDumpId", dump).text("name", name).time_as("basetime", at).end());
    let mut roots = 0;
    for edge in &graph.edges {
        roots += u64::from(edge.is_root());
        xml.put(&edge.element(dump));
        write_much();
    }
    if let Some(why) = xml.flush().or(why) {
        return Err(why);
    }
    if xml.has_ended() {
        return Err("the log has already ended: it could not be written".to_owned());
    }
    if graph.is_cut {
        return Err(format!("{}: only the first {MOST_EDGES} are in the log", too_many()));
    }
    Ok(HeapLogged {
        dump,
        file: xml.path().to_string_lossy().into_owned(),
        objects: graph.nodes.len() as u64,
        references: graph.edges.len() as u64 - roots,
        roots,
        pause_us: graph.pause_us,
    })
}
