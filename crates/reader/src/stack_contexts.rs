//! The contexts of stacks that a trace has of its own.

use et_names::SiteId;
use rustc_hash::FxHashMap;

use crate::model::{ContextId, Contexts};
use crate::record::StackId;
use crate::stacks::StackTable;

/// Each is found once: methods, with the lines on which they call. That of an allocation has no line, since its site has it. The VM may call
/// something at an allocation, though: to load a class.
#[derive(Clone, Debug, Default)]
pub struct StackContexts {
    /// By number of the stack.
    known: Vec<Option<ContextId>>,
    /// As callers of other stacks, if that differs.
    callers: FxHashMap<StackId, ContextId>,
}

impl StackContexts {
    /// The context of a stack.
    pub fn of(&mut self, stack: StackId, stacks: &StackTable, contexts: &mut Contexts) -> ContextId {
        self.known.resize(stacks.len() + 1, None);
        let (mut at, mut unknown) = (stack, Vec::new());
        let mut context = ContextId::EMPTY;
        while let Some((caller, method, site)) = stacks.top(at) {
            let allocates = stacks.allocates(at);
            let is_last = at == stack;
            let known = match allocates && !is_last {
                true => self.callers.get(&at).copied(),
                false => self.known[at.0 as usize],
            };
            if let Some(known) = known {
                context = known;
                break;
            }
            unknown.push((at, method, if allocates && is_last { SiteId(0) } else { site }, allocates && !is_last));
            at = caller;
        }
        for (stack, method, site, allocates) in unknown.into_iter().rev() {
            if method.0 != 0 {
                context = contexts.call_at(context, site, method);
            }
            match allocates {
                true => _ = self.callers.insert(stack, context),
                false => self.known[stack.0 as usize] = Some(context),
            }
        }
        context
    }
}
