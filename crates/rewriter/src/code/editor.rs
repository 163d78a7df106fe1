//! Inserts code into a method and adjusts branches, tables and frames.
//!
//! Code can be inserted at two places of each instruction boundary. *Behind* an instruction: executed when control
//! falls through from it, but not when a branch targets the next one. *Before* an instruction: executed however control
//! reaches it. Branch targets, frames, line numbers, and the start and end of ranges at a pc move to the code inserted
//! before that instruction; the `Uninitialized` type of a frame moves to the `new` itself.

use std::collections::BTreeMap;

use thiserror::Error;

use super::instruction::switch_padding;
use super::opcode::{self, *};
use super::{CodeAttribute, ExceptionEntry, Frame, Instruction, StackMap, VerificationType, type_annotations};
use crate::classfile::{Malformed, PoolBuilder, PoolFull, write_attribute};

/// Why the edited method could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    #[error("the method would have {0} bytes of code, 65535 are allowed")]
    TooLarge(usize),
    #[error("the method would need more than 65535 stack slots or local variables")]
    TooManySlots,
    #[error("the method would need more than 65535 {0}")]
    TooManyRows(&'static str),
    #[error("a conditional branch outgrew 16 bits and there is no place for a longer jump")]
    NoPlaceForJump,
    #[error(transparent)]
    PoolFull(#[from] PoolFull),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Local variables in the stack map frame of an appended handler, whose stack is a single `Throwable`. A handler for
/// the whole code must only have variables that all frames of the method have.
pub type HandlerFrame = Vec<VerificationType>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Behind,
    Before,
}

#[derive(Clone, Copy, Debug)]
struct Insertion {
    /// The boundary, given as the pc of the instruction after it.
    pc: u32,
    place: Place,
    /// Range of the snippet in the arena.
    start: u32,
    end: u32,
}

/// Code appended after the original code.
#[derive(Debug)]
enum Tail {
    /// A handler for everything thrown in some ranges; ends in `athrow`.
    CatchAll { body: Vec<u8>, ranges: Vec<(u32, u32)>, locals: HandlerFrame },
    /// Code that runs before a handler that normal control flow can reach as well, and then jumps to it.
    HandlerPrefix { body: Vec<u8>, handler: u32 },
}

/// A trampoline for a conditional branch whose target is too far away: a `goto_w` to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Island {
    /// The boundary where it stands, after an instruction from which control does not fall through.
    pc: u32,
    target: u32,
}

/// The part of a handler that is covered by the handler itself.
#[derive(Clone, Copy, Debug)]
struct OwnHandler {
    handler: u32,
    last: u32,
    /// Length in bytes of the last instruction, which is not a branch.
    length: u16,
}

const GOTO_W_LENGTH: u32 = 5;

/// Collects insertions, then writes the new `Code` attribute.
#[derive(Debug)]
pub struct CodeEditor<'c, 'a> {
    code: &'c CodeAttribute<'a>,
    arena: Vec<u8>,
    insertions: Vec<Insertion>,
    tails: Vec<Tail>,
    own_handlers: Vec<OwnHandler>,
    /// Pcs of the instructions to leave out, in ascending order.
    replaced: Vec<u32>,
    /// Stack slots needed on top of the original code's.
    extra_stack: u16,
    /// Stack slots needed by the appended handlers, which start with an empty stack.
    least_stack: u16,
    extra_locals: u16,
    /// Local variables behind those of the method that are not for the others of these.
    reserved_locals: u16,
}

impl<'c, 'a> CodeEditor<'c, 'a> {
    /// Creates an editor without insertions.
    pub fn new(code: &'c CodeAttribute<'a>) -> Self {
        Self {
            code,
            arena: Vec::new(),
            insertions: Vec::new(),
            tails: Vec::new(),
            own_handlers: Vec::new(),
            replaced: Vec::new(),
            extra_stack: 0,
            least_stack: 0,
            extra_locals: 0,
            reserved_locals: 0,
        }
    }

    /// Whether nothing has been inserted.
    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty() && self.tails.is_empty()
    }

    fn insert(&mut self, pc: u32, place: Place, code: &[u8], stack: u16) {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(code);
        self.insertions.push(Insertion { pc, place, start, end: self.arena.len() as u32 });
        self.extra_stack = self.extra_stack.max(stack);
    }

    /// Inserts code that is executed once, on method entry. `stack`: number of stack slots that it needs.
    pub fn at_entry(&mut self, code: &[u8], stack: u16) {
        self.insert(0, Place::Behind, code, stack);
    }

    /// Inserts code before an instruction, executed however control reaches it. `stack`: number of stack slots that it
    /// needs on top of the original code's.
    pub fn before(&mut self, instruction: &Instruction<'_>, code: &[u8], stack: u16) {
        self.insert(instruction.pc, Place::Before, code, stack);
    }

    /// Inserts code behind an instruction, executed when the instruction has completed.
    pub fn behind(&mut self, instruction: &Instruction<'_>, code: &[u8], stack: u16) {
        self.insert(instruction.next_pc(), Place::Behind, code, stack);
    }

    /// Replaces an instruction, which is not a branch, by code with the same effect on the stack.
    pub fn replace(&mut self, instruction: &Instruction<'_>, code: &[u8]) {
        self.before(instruction, code, 0);
        self.replaced.push(instruction.pc);
    }

    /// Allocates a local variable that the method does not use. Every call returns the same one.
    pub fn scratch_local(&mut self) -> u16 {
        self.first_local(1, 0)
    }

    /// Allocates a second such variable, for long-lived values.
    pub fn saved_local(&mut self) -> u16 {
        self.first_local(2, 1)
    }

    /// Allocates `count` more variables in a row, for use within a single snippet, and returns the first.
    pub fn spilled_locals(&mut self, count: u16) -> u16 {
        self.first_local(count.saturating_add(2), 2)
    }

    /// Allocates local variables for the whole method; call it before any of the others. Returns the first.
    pub fn reserve_locals(&mut self, count: u16) -> u16 {
        self.reserved_locals = count;
        self.extra_locals = self.extra_locals.max(count);
        self.code.max_locals
    }

    /// The variable with this number behind the reserved ones, of which there are to be `count`.
    fn first_local(&mut self, count: u16, number: u16) -> u16 {
        self.extra_locals = self.extra_locals.max(count.saturating_add(self.reserved_locals));
        self.code.max_locals.saturating_add(self.reserved_locals).saturating_add(number)
    }

    /// Appends a handler for everything thrown in `ranges` (pcs of the original code, end exclusive), tried after all
    /// existing handlers. `body` starts with the exception on the stack and must not fall off its end.
    pub fn catch_all(&mut self, ranges: Vec<(u32, u32)>, locals: HandlerFrame, body: &[u8], stack: u16) {
        self.least_stack = self.least_stack.max(stack + 1);
        self.tails.push(Tail::CatchAll { body: body.to_vec(), ranges, locals });
    }

    /// Inserts code before an exception handler that normal control flow can reach as well, such that only exceptions
    /// execute it.
    pub fn before_handler(&mut self, handler: u32, body: &[u8], stack: u16) {
        self.least_stack = self.least_stack.max(stack + 1);
        self.tails.push(Tail::HandlerPrefix { body: body.to_vec(), handler });
    }

    /// Inserts code behind the last instruction of the part of a handler that the handler itself covers. The new code
    /// is not covered.
    pub fn behind_own_handler(&mut self, handler: u32, last: &Instruction<'_>, code: &[u8], stack: u16) {
        self.behind(last, code, stack);
        let length = (last.next_pc() - last.pc) as u16;
        self.own_handlers.push(OwnHandler { handler, last: last.pc, length });
    }

    /// New end of an entry of the exception table.
    fn end_of(&self, entry: &ExceptionEntry, layout: &Layout<'_, '_>) -> u16 {
        let is_own = |own: &&OwnHandler| {
            own.handler == u32::from(entry.handler) && own.last + u32::from(own.length) == u32::from(entry.end)
        };
        match self.own_handlers.iter().find(is_own) {
            Some(own) => layout.instruction(own.last) + own.length,
            None => layout.target(entry.end.into()),
        }
    }

    /// Writes the content of the new `Code` attribute. `frames` has the method's frames, or `None` if it needs none.
    /// Frames need the exact types on entry where a handler prefix or a long method may derive new frames from old
    /// ones.
    pub fn finish(mut self, frames: Option<StackMap>, pool: &mut PoolBuilder) -> Result<Vec<u8>, EditError> {
        self.insertions.sort_by_key(|insertion| (insertion.pc, insertion.place));
        let mut layout = Layout::new(&self, frames.is_some());
        layout.settle(frames.as_ref())?;
        layout.place_odd_offsets();
        let Placed { code: new_code, islands, tails } = layout.write();
        if new_code.len() > 65535 {
            return Err(EditError::TooLarge(new_code.len()));
        }
        let max_stack = self.code.max_stack.checked_add(self.extra_stack).ok_or(EditError::TooManySlots)?;
        let max_stack = max_stack.max(self.least_stack);
        let max_locals = self.code.max_locals.checked_add(self.extra_locals).ok_or(EditError::TooManySlots)?;

        let mut out = Vec::with_capacity(new_code.len() + 256);
        out.extend_from_slice(&max_stack.to_be_bytes());
        out.extend_from_slice(&max_locals.to_be_bytes());
        out.extend_from_slice(&(new_code.len() as u32).to_be_bytes());
        out.extend_from_slice(&new_code);
        self.write_exceptions(&layout, &tails, &mut out)?;
        self.write_attributes(&layout, &islands, &tails, frames, pool, &mut out)?;
        Ok(out)
    }

    fn write_exceptions(&self, layout: &Layout<'_, '_>, tails: &[u32], out: &mut Vec<u8>) -> Result<(), EditError> {
        let prefixes: BTreeMap<u32, u32> = self
            .tails
            .iter()
            .zip(tails)
            .filter_map(|(tail, &at)| match tail {
                Tail::HandlerPrefix { handler, .. } => Some((*handler, at)),
                Tail::CatchAll { .. } => None,
            })
            .collect();
        let mut rows: Vec<ExceptionEntry> = Vec::with_capacity(self.code.exceptions.len() + 2);
        for entry in &self.code.exceptions {
            let prefix = prefixes.get(&entry.handler.into());
            rows.push(ExceptionEntry {
                start: layout.target(entry.start.into()),
                end: self.end_of(entry, layout),
                handler: prefix.map_or_else(|| layout.target(entry.handler.into()), |&at| at as u16),
                catch_type: entry.catch_type,
            });
        }
        for (tail, &at) in self.tails.iter().zip(tails) {
            if let Tail::CatchAll { ranges, .. } = tail {
                for &(start, end) in ranges {
                    let (start, end) = (layout.target(start), layout.target(end));
                    if start < end {
                        rows.push(ExceptionEntry { start, end, handler: at as u16, catch_type: 0 });
                    }
                }
            }
        }
        let count = u16::try_from(rows.len()).map_err(|_| EditError::TooManyRows("exception table entries"))?;
        out.extend_from_slice(&count.to_be_bytes());
        for row in rows {
            for value in [row.start, row.end, row.handler, row.catch_type] {
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        Ok(())
    }

    fn write_attributes(
        &self,
        layout: &Layout<'_, '_>,
        islands: &[(u32, u32)],
        tails: &[u32],
        frames: Option<StackMap>,
        pool: &mut PoolBuilder,
        out: &mut Vec<u8>,
    ) -> Result<(), EditError> {
        let count_at = out.len();
        let mut count = self.code.attributes.len();
        out.extend_from_slice(&[0, 0]);
        let mut frames = match frames {
            Some(map) => Some(self.moved_frames(layout, islands, tails, map, pool)?),
            None => None,
        };
        for attribute in &self.code.attributes {
            match attribute.name {
                b"LineNumberTable" => {
                    write_attribute(
                        out,
                        attribute.name_index,
                        &rows::<2>(attribute.info, |row| {
                            row[0] = layout.target(row[0].into());
                        }),
                    );
                }
                b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                    write_attribute(
                        out,
                        attribute.name_index,
                        &rows::<5>(attribute.info, |row| {
                            let (start, end) =
                                (layout.target(row[0].into()), layout.target(u32::from(row[0]) + u32::from(row[1])));
                            (row[0], row[1]) = (start, end.saturating_sub(start));
                        }),
                    );
                }
                b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                    let moved = type_annotations::relocate(
                        attribute,
                        |pc| layout.target(pc.into()),
                        |pc| layout.instruction(pc.into()),
                    );
                    // The JVM ignores these attributes. Malformed ones, which some compilers write, are left as they
                    // are.
                    write_attribute(out, attribute.name_index, moved.as_deref().unwrap_or(attribute.info));
                }
                b"StackMapTable" => match frames.take() {
                    Some(map) => write_attribute(out, attribute.name_index, &map.write()),
                    // Version 49 and older: the VM ignores the attribute, and so do we.
                    None => attribute.write(out),
                },
                _ => attribute.write(out),
            }
        }
        if let Some(map) = frames.filter(|map| !map.frames.is_empty()) {
            count += 1;
            write_attribute(out, pool.utf8(b"StackMapTable")?, &map.write());
        }
        let count = u16::try_from(count).map_err(|_| EditError::TooManyRows("attributes"))?;
        out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
        Ok(())
    }

    fn moved_frames(
        &self,
        layout: &Layout<'_, '_>,
        islands: &[(u32, u32)],
        tails: &[u32],
        map: StackMap,
        pool: &mut PoolBuilder,
    ) -> Result<StackMap, EditError> {
        let mut added = Vec::new();
        let copy_of = |pc: u32, at: u32| match map.at(pc) {
            Some(frame) => Ok(Frame { pc: at, locals: frame.locals.clone(), stack: frame.stack.clone() }),
            None => Err(Malformed::at(self.code.offset + pc as usize, "a branch target without a stack map frame")),
        };
        for &(target, at) in islands {
            added.push(copy_of(target, at)?);
        }
        for (tail, &at) in self.tails.iter().zip(tails) {
            match tail {
                Tail::HandlerPrefix { handler, .. } => added.push(copy_of(*handler, at)?),
                Tail::CatchAll { locals, .. } => {
                    let throwable = pool.class(b"java/lang/Throwable")?;
                    added.push(Frame {
                        pc: at,
                        locals: locals.clone(),
                        stack: vec![VerificationType::Object(throwable)],
                    });
                }
            }
        }
        let StackMap { initial_locals, mut frames } = map;
        for frame in &mut frames {
            frame.pc = layout.target(frame.pc).into();
        }
        frames.append(&mut added);
        frames.sort_by_key(|frame| frame.pc);
        for frame in &mut frames {
            for kind in frame.locals.iter_mut().chain(&mut frame.stack) {
                if let VerificationType::Uninitialized(pc) = kind {
                    *pc = layout.instruction((*pc).into());
                }
            }
        }
        Ok(StackMap { initial_locals, frames })
    }
}

/// Edits every row of a table, which has a count and rows of `N` 16-bit columns. A malformed table is left as it is.
fn rows<const N: usize>(info: &[u8], mut edit: impl FnMut(&mut [u16; N])) -> Vec<u8> {
    let mut out = info.to_vec();
    for row in out.get_mut(2..).unwrap_or_default().chunks_exact_mut(N * 2) {
        let mut columns = [0; N];
        for (column, bytes) in columns.iter_mut().zip(row.chunks_exact(2)) {
            *column = u16::from_be_bytes([bytes[0], bytes[1]]);
        }
        edit(&mut columns);
        for (column, bytes) in columns.iter().zip(row.chunks_exact_mut(2)) {
            bytes.copy_from_slice(&column.to_be_bytes());
        }
    }
    out
}

/// How a branch instruction is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    AsItWas,
    /// With a 32-bit offset: `goto_w`, `jsr_w`.
    Long,
    /// As the opposite condition around a `goto_w`; only in methods without frames.
    Inverted,
    /// As a branch to an island.
    Island(usize),
}

struct Layout<'e, 'a> {
    editor: &'e CodeEditor<'e, 'a>,
    has_frames: bool,
    forms: Vec<Form>,
    islands: Vec<Island>,
    island_at: Vec<u32>,
    /// By old pc: whether there is an island at the boundary.
    has_island: Vec<bool>,
    /// Where an island may be placed: boundaries after instructions from which control does not fall through, outside
    /// protected ranges. Computed when the first island is needed.
    island_places: Option<Vec<u32>>,
    /// New positions of branch targets, by old pc; for offsets inside instructions see `place_odd_offsets`.
    targets: Vec<u32>,
    instructions: Vec<u32>,
    tails: Vec<u32>,
}

struct Placed {
    code: Vec<u8>,
    /// Old target and new position of each island.
    islands: Vec<(u32, u32)>,
    tails: Vec<u32>,
}

impl<'e, 'a> Layout<'e, 'a> {
    fn new<'c: 'e>(editor: &'e CodeEditor<'c, 'a>, has_frames: bool) -> Self {
        let code = editor.code;
        Self {
            editor,
            has_frames,
            forms: vec![Form::AsItWas; code.instructions.len()],
            islands: Vec::new(),
            island_at: Vec::new(),
            has_island: vec![false; code.code.len() + 1],
            island_places: None,
            targets: vec![0; code.code.len() + 1],
            instructions: vec![0; code.code.len() + 1],
            tails: Vec::new(),
        }
    }

    /// New position of a branch target, or of the start or end of a range.
    fn target(&self, pc: u32) -> u16 {
        let last = self.targets.len() - 1;
        self.targets[(pc as usize).min(last)] as u16
    }

    /// New position of the instruction itself.
    fn instruction(&self, pc: u32) -> u16 {
        let last = self.instructions.len() - 1;
        self.instructions[(pc as usize).min(last)] as u16
    }

    fn is_replaced(&self, pc: u32) -> bool {
        !self.editor.replaced.is_empty() && self.editor.replaced.binary_search(&pc).is_ok()
    }

    fn length(&self, index: usize, instruction: &Instruction<'_>, at: u32) -> u32 {
        if self.is_replaced(instruction.pc) {
            return 0;
        }
        match (self.forms[index], instruction.opcode) {
            (Form::Long, _) => GOTO_W_LENGTH,
            (Form::Inverted, _) => 3 + GOTO_W_LENGTH,
            (_, TABLESWITCH | LOOKUPSWITCH) => 1 + (switch_padding(at) + instruction.switch_body().len()) as u32,
            _ => instruction.bytes.len() as u32,
        }
    }

    fn place_islands(&mut self, pc: u32, at: &mut u32) {
        if !self.has_island[pc as usize] {
            return;
        }
        for (island, place) in self.islands.iter().zip(&mut self.island_at) {
            if island.pc == pc {
                *place = *at;
                *at += GOTO_W_LENGTH;
            }
        }
    }

    /// Computes all positions from the current forms of the branches.
    fn place(&mut self) {
        let editor = self.editor;
        let mut insertions = editor.insertions.iter().peekable();
        let mut at = 0u32;
        self.island_at = vec![0; self.islands.len()];
        let end = editor.code.code.len() as u32;
        for index in 0..editor.code.instructions.len() {
            let instruction = &editor.code.instructions[index];
            let pc = instruction.pc;
            self.place_islands(pc, &mut at);
            while let Some(insertion) = insertions.next_if(|next| next.pc == pc && next.place == Place::Behind) {
                at += insertion.end - insertion.start;
            }
            self.targets[pc as usize] = at;
            while let Some(insertion) = insertions.next_if(|next| next.pc == pc) {
                at += insertion.end - insertion.start;
            }
            self.instructions[pc as usize] = at;
            at += self.length(index, instruction, at);
        }
        self.place_islands(end, &mut at);
        for insertion in insertions {
            at += insertion.end - insertion.start;
        }
        self.targets[end as usize] = at;
        self.instructions[end as usize] = at;
        self.tails.clear();
        for tail in &editor.tails {
            self.tails.push(at);
            at += match tail {
                Tail::CatchAll { body, .. } => body.len() as u32,
                Tail::HandlerPrefix { body, .. } => body.len() as u32 + GOTO_W_LENGTH,
            };
        }
    }

    /// Assigns positions to offsets inside instructions too: debug tables may contain them, and a JVM rejects a table
    /// in which two different rows become equal.
    fn place_odd_offsets(&mut self) {
        for instruction in &self.editor.code.instructions {
            let start = instruction.pc as usize;
            let at = self.instructions[start];
            let end = self.targets[instruction.next_pc() as usize];
            for inside in 1..instruction.bytes.len() {
                let place = (at + inside as u32).min(end);
                self.targets[start + inside] = place;
                self.instructions[start + inside] = place;
            }
        }
    }

    /// Widens branches until all reach their targets.
    fn settle(&mut self, frames: Option<&StackMap>) -> Result<(), EditError> {
        loop {
            self.place();
            let end = self.targets[self.editor.code.code.len()] as usize;
            if end > 65535 {
                return Err(EditError::TooLarge(end));
            }
            if end <= i16::MAX as usize {
                return Ok(());
            }
            let mut changed = false;
            for index in 0..self.editor.code.instructions.len() {
                let instruction = self.editor.code.instructions[index];
                let Some(target) = instruction.branch_target() else { continue };
                let from = self.instructions[instruction.pc as usize];
                let form = self.forms[index];
                let to = match form {
                    Form::AsItWas => self.targets[target as usize],
                    Form::Island(island) => self.island_at[island],
                    Form::Long | Form::Inverted => continue,
                };
                if i16::try_from(i64::from(to) - i64::from(from)).is_ok() || instruction.bytes.len() == 5 {
                    continue;
                }
                changed = true;
                self.forms[index] = if !opcode::is_conditional(instruction.opcode) {
                    Form::Long
                } else if !self.has_frames {
                    Form::Inverted
                } else {
                    Form::Island(self.island_for(from, target as u32, frames)?)
                };
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Returns an island near the new position `from` that jumps to the old pc `target`; creates it if necessary.
    fn island_for(&mut self, from: u32, target: u32, frames: Option<&StackMap>) -> Result<usize, EditError> {
        // Leaves room for the growth caused by later islands and wider branches.
        const REACH: u32 = 28_000;
        let near = |place: u32| place.abs_diff(from) < REACH;
        let known = (0..self.islands.len()).find(|&index| {
            self.islands[index].target == target && self.island_at.get(index).is_some_and(|&place| near(place))
        });
        if let Some(index) = known {
            return Ok(index);
        }
        if frames.is_none_or(|map| map.at(target).is_none()) {
            return Err(EditError::NoPlaceForJump);
        }
        // Nearest first; after the last place before `from` comes the first one after it.
        let places = self.island_places.get_or_insert_with(|| island_places(self.editor));
        let after = places.partition_point(|&pc| self.targets[pc as usize] < from);
        let candidates = [after.checked_sub(1).map(|before| places[before]), places.get(after).copied()];
        let pc = candidates
            .into_iter()
            .flatten()
            .filter(|&pc| self.targets[pc as usize].abs_diff(from) < REACH)
            .min_by_key(|&pc| self.targets[pc as usize].abs_diff(from))
            .ok_or(EditError::NoPlaceForJump)?;
        self.has_island[pc as usize] = true;
        self.islands.push(Island { pc, target });
        self.island_at.push(self.targets[pc as usize]);
        Ok(self.islands.len() - 1)
    }

    fn write(&self) -> Placed {
        let editor = self.editor;
        let mut out: Vec<u8> = Vec::with_capacity(self.tails.last().map_or(0, |&at| at as usize + 32));
        let mut insertions = editor.insertions.iter().peekable();
        let write_islands = |pc: u32, out: &mut Vec<u8>| {
            if !self.has_island[pc as usize] {
                return;
            }
            for island in self.islands.iter().filter(|island| island.pc == pc) {
                let from = out.len() as u32;
                jump(out, GOTO_W, from, self.targets[island.target as usize]);
            }
        };
        let arena = |insertion: &Insertion| &editor.arena[insertion.start as usize..insertion.end as usize];
        for (index, instruction) in editor.code.instructions.iter().enumerate() {
            let pc = instruction.pc;
            write_islands(pc, &mut out);
            while let Some(insertion) = insertions.next_if(|next| next.pc == pc) {
                out.extend_from_slice(arena(insertion));
            }
            debug_assert_eq!(out.len() as u32, self.instructions[pc as usize]);
            self.write_instruction(index, instruction, &mut out);
            debug_assert_eq!(
                out.len() as u32 - self.instructions[pc as usize],
                self.length(index, instruction, self.instructions[pc as usize])
            );
        }
        write_islands(editor.code.code.len() as u32, &mut out);
        for insertion in insertions {
            out.extend_from_slice(arena(insertion));
        }
        for tail in &editor.tails {
            match tail {
                Tail::CatchAll { body, .. } => out.extend_from_slice(body),
                Tail::HandlerPrefix { body, handler } => {
                    out.extend_from_slice(body);
                    let from = out.len() as u32;
                    jump(&mut out, GOTO_W, from, self.targets[*handler as usize]);
                }
            }
        }
        let islands = self.islands.iter().zip(&self.island_at).map(|(island, &at)| (island.target, at)).collect();
        Placed { code: out, islands, tails: self.tails.clone() }
    }

    fn write_instruction(&self, index: usize, instruction: &Instruction<'_>, out: &mut Vec<u8>) {
        let from = out.len() as u32;
        if self.is_replaced(instruction.pc) {
            return;
        }
        if let Some(target) = instruction.branch_target() {
            let to = match self.forms[index] {
                Form::Island(island) => self.island_at[island],
                _ => self.targets[target as usize],
            };
            match self.forms[index] {
                Form::Long => jump(out, if instruction.opcode == GOTO { GOTO_W } else { JSR_W }, from, to),
                Form::Inverted => {
                    out.push(opcode::inverted(instruction.opcode));
                    out.extend_from_slice(&(3 + GOTO_W_LENGTH as u16).to_be_bytes());
                    jump(out, GOTO_W, from + 3, to);
                }
                Form::AsItWas | Form::Island(_) if instruction.bytes.len() == 5 => {
                    jump(out, instruction.opcode, from, to)
                }
                Form::AsItWas | Form::Island(_) => {
                    out.push(instruction.opcode);
                    out.extend_from_slice(&((i64::from(to) - i64::from(from)) as i16).to_be_bytes());
                }
            }
        } else if matches!(instruction.opcode, TABLESWITCH | LOOKUPSWITCH) {
            out.push(instruction.opcode);
            out.resize(out.len() + switch_padding(from), 0);
            let body_at = out.len();
            let old_body_at = instruction.bytes.len() - instruction.switch_body().len();
            out.extend_from_slice(instruction.switch_body());
            for (offset_at, target) in instruction.switch_offsets().zip(instruction.targets()) {
                let at = body_at + offset_at - old_body_at;
                let offset = (i64::from(self.targets[target as usize]) - i64::from(from)) as i32;
                out[at..at + 4].copy_from_slice(&offset.to_be_bytes());
            }
        } else {
            out.extend_from_slice(instruction.bytes);
        }
    }
}

/// Computes the boundaries where an island may be placed.
fn island_places(editor: &CodeEditor<'_, '_>) -> Vec<u32> {
    let code = editor.code;
    // An island inside a protected range would have to satisfy the handler's frame, which is certain only if every
    // frame of the method does. For each pc, counts the other ranges that begin minus those that end there:
    let mut edges = vec![0i32; code.code.len() + 2];
    let mut protect = |start: u32, end: u32| {
        // An island at a boundary is before the code of a range that starts there, and inside a range that ends there.
        edges[start as usize + 1] += 1;
        edges[end as usize + 1] -= 1;
    };
    code.exceptions.iter().for_each(|entry| protect(entry.start.into(), entry.end.into()));
    for tail in &editor.tails {
        if let Tail::CatchAll { ranges, locals, .. } = tail {
            // A handler for a part of the code belongs to a constructor: frames from before and after `super(…)` must
            // not be mixed.
            let is_for_all = ranges.as_slice() == [(0, code.code.len() as u32)]
                && !locals.contains(&VerificationType::UninitializedThis);
            if !is_for_all {
                ranges.iter().for_each(|&(start, end)| protect(start, end));
            }
        }
    }
    let mut depth = 0;
    let is_free: Vec<bool> = edges
        .iter()
        .map(|edge| {
            depth += edge;
            depth == 0
        })
        .collect();
    let ends = code.instructions.iter().filter(|instruction| opcode::ends_block(instruction.opcode));
    ends.map(Instruction::next_pc).filter(|&pc| is_free[pc as usize]).collect()
}

fn jump(out: &mut Vec<u8>, opcode: u8, from: u32, to: u32) {
    out.push(opcode);
    out.extend_from_slice(&(to.wrapping_sub(from) as i32).to_be_bytes());
}
