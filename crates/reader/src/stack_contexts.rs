//! The contexts of stacks that a trace has of its own.

use crate::model::{ContextId, Contexts};
use crate::record::StackId;
use crate::stacks::StackTable;

/// Each is found once: methods, with the lines on which they call.
#[derive(Clone, Debug, Default)]
pub struct StackContexts {
    /// By number of the stack.
    known: Vec<Option<ContextId>>,
}

impl StackContexts {
    /// The context of a stack.
    pub fn of(&mut self, stack: StackId, stacks: &StackTable, contexts: &mut Contexts) -> ContextId {
        self.known.resize(stacks.len() + 1, None);
        let (mut at, mut unknown) = (stack, Vec::new());
        let mut context = ContextId::EMPTY;
        while let Some((caller, method, site)) = stacks.top(at) {
            if let Some(known) = self.known[at.0 as usize] {
                context = known;
                break;
            }
            unknown.push((at, method, site));
            at = caller;
        }
        for (stack, method, site) in unknown.into_iter().rev() {
            if method.0 != 0 {
                context = contexts.call_at(context, site, method);
            }
            self.known[stack.0 as usize] = Some(context);
        }
        context
    }
}
