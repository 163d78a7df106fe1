//! Checks the stack depth at each instruction (JVMS §4.9.2): it is the same on all paths and never exceeds `max_stack`.

use super::Sink;
use super::code::Code;

/// `frames`: the stack depths declared by stack map frames, by offset.
pub(super) fn check(code: &Code<'_>, frames: &[(u32, u32)], sink: &mut Sink) {
    let mut walk = Walk { code, depths: vec![None; code.length()], work: Vec::new(), sink, failed: false };
    walk.reach(0, 0, 0);
    for (offset, depth) in frames {
        walk.reach(*offset as usize, *depth, *offset as usize);
    }
    walk.run();
    // A handler can be entered from every reachable instruction that it covers.
    loop {
        let reached: Vec<u16> = code
            .handlers
            .iter()
            .filter(|row| {
                walk.depths[usize::from(row.handler)].is_none()
                    && walk.depths[usize::from(row.start)..usize::from(row.end)].iter().any(Option::is_some)
            })
            .map(|row| row.handler)
            .collect();
        if reached.is_empty() || walk.failed {
            break;
        }
        for handler in reached {
            walk.reach(handler.into(), 1, handler.into());
        }
        walk.run();
    }
    for row in &code.handlers {
        let depth = walk.depths[usize::from(row.handler)];
        if depth.is_some_and(|depth| depth != 1) && !walk.failed {
            walk.sink.at(row.handler.into(), "a handler starts with something other than the exception on the stack");
            return;
        }
    }
}

struct Walk<'w, 'a> {
    code: &'w Code<'a>,
    depths: Vec<Option<u32>>,
    /// Indexes of instructions to go on from.
    work: Vec<usize>,
    sink: &'w mut Sink,
    failed: bool,
}

impl Walk<'_, '_> {
    fn fail(&mut self, at: usize, what: String) {
        // One is enough: the rest follows from it.
        if !self.failed {
            self.sink.at(at, what);
        }
        self.failed = true;
    }

    fn reach(&mut self, offset: usize, depth: u32, from: usize) {
        if depth > self.code.max_stack.into() {
            return self.fail(from, format!("the stack is {depth} deep, max_stack is {}", self.code.max_stack));
        }
        match self.depths[offset] {
            None => {
                self.depths[offset] = Some(depth);
                if let Ok(index) = self.code.steps.binary_search_by_key(&(offset as u32), |step| step.at) {
                    self.work.push(index);
                }
            }
            Some(other) if other != depth => {
                self.fail(from, format!("it leads to {offset} with {depth} slots on the stack, others with {other}"));
            }
            Some(_) => {}
        }
    }

    fn run(&mut self) {
        while let Some(mut index) = self.work.pop() {
            loop {
                let step = self.code.steps[index];
                let at = step.at as usize;
                let Some(depth) = self.depths[at] else { break };
                let Some(left) = depth.checked_sub(step.pops) else {
                    return self.fail(at, format!("it takes {} slots off a stack of {depth}", step.pops));
                };
                let depth = left + step.pushes;
                if depth > self.code.max_stack.into() {
                    let max = self.code.max_stack;
                    return self.fail(at, format!("it makes the stack {depth} deep, max_stack is {max}"));
                }
                let next = self.code.steps.get(index + 1);
                let end = next.map_or(self.code.targets.len(), |next| next.targets as usize);
                for target in step.targets as usize..end {
                    self.reach(self.code.targets[target] as usize, depth, at);
                }
                let Some(next) = next.filter(|_| !step.ends_block) else { break };
                // A subroutine takes its return address off the stack and leaves the rest alone.
                let depth = if step.calls_subroutine { depth - step.pushes } else { depth };
                let next = next.at as usize;
                if self.depths[next].is_some() {
                    self.reach(next, depth, at);
                    break;
                }
                self.depths[next] = Some(depth);
                index += 1;
            }
        }
    }
}
