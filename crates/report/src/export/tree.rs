//! The stacks of a profile as a tree, with the display data of each frame.

use et_analysis::Labels;
use et_analysis::profile::{Cell, Origin, Profile};
use et_names::MethodId;
use et_reader::made_in::{MadeIn, Means};
use et_reader::model::{Context, ContextId, Contexts};
use rustc_hash::FxHashMap;

/// A frame of a stack, or the allocated class at its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Method name, `java.util.HashMap.put`; for the innermost frame, the allocated class.
    pub name: String,
    /// Source file, `java/util/HashMap.java`; empty if unknown.
    pub file: String,
    /// Line of the allocation in the allocating frame; in its callers that of the call, if the trace has stacks, 0 otherwise.
    pub line: u32,
    /// First line of the method's code; 0 if unknown.
    pub first_line: u32,
    /// Whether it is a class and not a method.
    pub is_class: bool,
}

/// A frame in the context of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Node of the caller.
    pub parent: Option<u32>,
    /// Index into [`Tree::frames`].
    pub frame: u32,
}

/// All stacks of a profile.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub frames: Vec<Frame>,
    /// Nodes; callers precede callees.
    pub nodes: Vec<Node>,
    /// The innermost nodes with their weights, each once.
    pub leaves: Vec<(u32, Cell)>,
}

impl Tree {
    /// Builds the tree of a profile.
    pub fn of(profile: &Profile, contexts: &Contexts, labels: Labels<'_>) -> Self {
        let mut maker = Maker {
            tree: Self::default(),
            contexts,
            labels,
            frames: FxHashMap::default(),
            nodes: FxHashMap::default(),
            of_contexts: vec![None; contexts.len()],
        };
        let mut leaves: FxHashMap<u32, usize> = FxHashMap::default();
        for (origin, cell) in &profile.cells {
            let node = maker.leaf(origin);
            match leaves.get(&node) {
                // Different sites with the same display name.
                Some(&at) => maker.tree.leaves[at].1.merge(cell),
                None => {
                    leaves.insert(node, maker.tree.leaves.len());
                    maker.tree.leaves.push((node, *cell));
                }
            }
        }
        maker.tree
    }

    /// Frames of a stack, innermost first.
    pub fn stack(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = Some(node);
        std::iter::from_fn(move || {
            let node = self.nodes[at? as usize];
            at = node.parent;
            Some(node.frame)
        })
    }
}

/// What a frame represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Method(MethodId, u32),
    Class(u32),
    /// How an object without a site was allocated.
    Means(Means),
}

struct Maker<'a> {
    tree: Tree,
    contexts: &'a Contexts,
    labels: Labels<'a>,
    frames: FxHashMap<Key, u32>,
    nodes: FxHashMap<Node, u32>,
    /// Nodes of the contexts that have been used so far.
    of_contexts: Vec<Option<u32>>,
}

impl Maker<'_> {
    fn frame(&mut self, key: Key) -> u32 {
        if let Some(&known) = self.frames.get(&key) {
            return known;
        }
        let frame = match key {
            Key::Method(method, line) => {
                let code = self.labels.naming().code_of_method(method);
                let (file, first_line) = code.map_or((String::new(), 0), |code| (code.file, code.line));
                Frame { name: self.labels.method(method), file, line, first_line, is_class: false }
            }
            Key::Class(class) => {
                let name = self.labels.class(et_reader::types::TypeId(class));
                Frame { name, file: String::new(), line: 0, first_line: 0, is_class: true }
            }
            Key::Means(means) => Frame {
                name: format!("({})", means.text()),
                file: String::new(),
                line: 0,
                first_line: 0,
                is_class: false,
            },
        };
        self.tree.frames.push(frame);
        let index = self.tree.frames.len() as u32 - 1;
        self.frames.insert(key, index);
        index
    }

    fn node(&mut self, parent: Option<u32>, key: Key) -> u32 {
        let node = Node { parent, frame: self.frame(key) };
        let nodes = &mut self.tree.nodes;
        *self.nodes.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() as u32 - 1
        })
    }

    /// Node of a calling context; `None` for the empty one.
    fn context(&mut self, context: ContextId) -> Option<u32> {
        // Callers first, and not recursively, since stacks may be deep.
        let mut missing = Vec::new();
        let mut at = context;
        while at != ContextId::EMPTY && self.of_contexts[at.0 as usize].is_none() {
            missing.push(at);
            at = self.contexts.get(at).caller;
        }
        let mut parent = if at == ContextId::EMPTY { None } else { self.of_contexts[at.0 as usize] };
        for context in missing.into_iter().rev() {
            let Context { method, at, .. } = self.contexts.get(context);
            let line = if at.0 == 0 { 0 } else { self.labels.naming().line_of_site(at).unwrap_or(0) };
            let node = self.node(parent, Key::Method(method, line));
            self.of_contexts[context.0 as usize] = Some(node);
            parent = Some(node);
        }
        parent
    }

    fn leaf(&mut self, origin: &Origin) -> u32 {
        let naming = self.labels.naming();
        let parent = match origin.place {
            MadeIn::Site(site) => {
                let line = naming.line_of_site(site).unwrap_or(0);
                let top = self.contexts.get(origin.context);
                let method = naming.method_of_site(site).filter(|_| !origin.is_initial);
                // The line belongs to the allocating frame. If the innermost method of the context is another one, the
                // allocating method has no hooks.
                let callers = if method == Some(top.method) { top.caller } else { origin.context };
                let caller = self.context(callers);
                method.map_or(caller, |method| Some(self.node(caller, Key::Method(method, line))))
            }
            MadeIn::Method(_, means) | MadeIn::Nowhere(means) => {
                let caller = self.context(origin.context);
                Some(self.node(caller, Key::Means(means)))
            }
        };
        self.node(parent, Key::Class(origin.class.0))
    }
}
