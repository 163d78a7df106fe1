//! Selects and inserts the hooks of a method.

use std::borrow::Cow;

use et_names::{ShortfallNames, Site, SiteNames, Witness};
use rustc_hash::FxHashMap;

use super::class::Work;
use super::events::Wanted;
use super::is_object;
use crate::classfile::{Malformed, Member, PoolBuilder, annotation_types, to_string};
use crate::code::opcode::{self, *};
use crate::code::{
    CodeAttribute, CodeEditor, EditError, Flow, HandlerFrame, Instruction, LineTable, Signature, StackMap, Value,
    VerificationType, class_of, kept_locals, limits, parameter_slots, parameters,
};
use crate::hooks::stacks::{Called, Tracked};
use crate::hooks::{self, ArrayAllocation, Constructor, Emitter, Leaf};

/// A method that is being written, and what all attempts share.
struct Body<'b, 'a> {
    member: &'b Member<'a>,
    index: u32,
    id: u32,
    code: &'b CodeAttribute<'a>,
    frames: Option<StackMap>,
    /// For each local variable on entry, whether it is kept throughout.
    kept: Vec<bool>,
    constructor: Option<Constructor>,
    sites: Sites,
    /// Instruction index of each `invokespecial <init>` with the pc of its `new`.
    initialised: Vec<(usize, u32)>,
    /// Local variables that on entry hold objects that the VM may have created for the call.
    from_vm: Vec<u16>,
    /// Uses of objects that need a witness, in order.
    uses: Vec<hooks::Use>,
    /// Set if entry and exit can share one hook.
    leaf: Option<Leaf>,
}

/// The ids of a method's sites.
#[derive(Debug, Default)]
struct Sites {
    /// The lowest; `None` if there are none.
    first: Option<u32>,
    /// The instructions that make arrays, and those that call if stacks are kept track of, in order.
    here: Vec<Here>,
    /// The sites of objects that are made by `new`, by the index of the instruction that calls their constructors.
    objects: Vec<(usize, u32)>,
}

/// An instruction with a site.
#[derive(Debug)]
struct Here {
    pc: u32,
    site: u32,
    /// False if the thread already has the value of the line: that of the call before, which has returned.
    needs_store: bool,
}

impl<'a> Work<'_, 'a> {
    /// Returns the new `Code` attribute of a method; `None` if nothing is inserted.
    pub(super) fn method(
        &mut self,
        index: u32,
        member: &Member<'a>,
        code: &CodeAttribute<'a>,
        emit: &mut Emitter<'_>,
    ) -> Result<Option<Vec<u8>>, EditError> {
        let lines = LineTable::of(&code.attributes);
        self.names.methods[index as usize].line = lines.line(0);
        for instruction in code.instructions.iter().filter(|instruction| instruction.opcode == PUTSTATIC) {
            if let Some(&field) = self.plan.field_places.get(&instruction.pool_index()) {
                self.names.field_refs[field as usize].is_static = true;
            }
        }

        if is_object(&self.plan.name, self.options) && member.name == b"<init>" {
            if !self.plan.events.sites {
                return Ok(None);
            }
            let mut editor = CodeEditor::new(code);
            hooks::object_init(&mut editor, emit);
            self.hooks.objects += 1;
            return editor.finish(None, emit.pool()).map(Some);
        }
        // HotSpot makes all instances of a class finalizable if its finalize() is more than a return.
        let is_empty_finalizer = member.name == b"finalize"
            && member.descriptor == b"()V"
            && matches!(code.instructions.as_slice(), [only] if only.opcode == RETURN);
        if is_empty_finalizer {
            return Ok(None);
        }

        let mut body = Body {
            member,
            index,
            id: self.ids.method + index,
            code,
            frames: None,
            kept: Vec::new(),
            constructor: None,
            sites: Sites::default(),
            initialised: Vec::new(),
            from_vm: match self.plan.events.knows_objects() {
                true => hooks::upcall_arguments(&self.plan.name, member, self.options.jdk),
                false => Vec::new(),
            },
            uses: Vec::new(),
            leaf: None,
        };
        self.analyse(&mut body, emit)?;
        body.sites = self.sites(&body, &lines)?;
        let mut last = None;
        let all = self.wanted(&body);
        for wanted in all.sacrifices() {
            let before = self.hooks;
            match self.attempt(&body, wanted, emit) {
                Err(
                    error @ (EditError::TooLarge(_)
                    | EditError::TooManySlots
                    | EditError::TooManyRows(_)
                    | EditError::NoPlaceForJump),
                ) => {
                    self.hooks = before;
                    // The first failure is the reason to report; the later ones say only that a step was not enough.
                    last.get_or_insert(error);
                }
                Err(error) => return Err(error),
                Ok(info) => {
                    let without = all.missing_from(wanted);
                    if let Some(error) = last.filter(|_| !without.is_empty()) {
                        self.shortfall(index, &without, error.to_string());
                    }
                    return Ok(info);
                }
            }
        }
        // Unreachable: the last attempt inserts nothing and therefore exceeds no limit.
        Ok(None)
    }

    /// The wanted hooks that the method has a place for; only these can be forgone. All fields are spelled out, so
    /// that the compiler asks about a new one.
    fn wanted(&self, body: &Body<'_, 'a>) -> Wanted {
        let (code, is_constructor) = (body.code, body.constructor.is_some());
        let (events, pool) = (self.plan.events, &self.plan.class.pool);
        let any = |test: &dyn Fn(&Instruction<'_>) -> bool| code.instructions.iter().any(test);
        let has = |opcodes: &[u8]| any(&|it| opcodes.contains(&it.opcode));
        Wanted {
            // A constructor saves the pending site of its object before it allocates others.
            sites: events.sites && (is_constructor || has(&[NEW])),
            arrays: events.arrays && has(&[NEWARRAY, ANEWARRAY, MULTIANEWARRAY]),
            array_sites: events.array_sites && has(&[NEWARRAY]),
            fields: events.fields && has(&[PUTFIELD, PUTSTATIC]),
            elements: events.elements && has(&[AASTORE]),
            short_elements: events.short_elements,
            constants: events.constants
                && any(&|it| matches!(it.opcode, LDC | LDC_W) && pool.is_string(it.pool_index())),
            calls: events.calls && (!body.from_vm.is_empty() || any(&|it| self.plan.calls.at(it).is_some())),
            methods: events.methods,
            stacks: events.stacks
                && body.sites.first.is_some()
                && !(self.options.jdk && hooks::stacks::runs_before_threads(&self.plan.name, body.member.name)),
            exceptions: events.exceptions && (!code.exceptions.is_empty() || has(&[ATHROW])),
            witness: if body.uses.is_empty() { Witness::None } else { events.witness },
        }
    }

    fn shortfall(&mut self, method: u32, hooks: &str, why: String) {
        self.names.shortfalls.push(ShortfallNames { method, hooks: hooks.into(), why });
    }

    /// Assigns ids to the sites of a method.
    fn sites(&mut self, body: &Body<'_, 'a>, lines: &LineTable) -> Result<Sites, Malformed> {
        let mut sites = Sites::default();
        let events = self.plan.events;
        if !events.sites {
            return Ok(sites);
        }
        let (code, pool) = (body.code, &self.plan.class.pool);
        let mut add = |descriptor: &[u8], dimensions: u8, pc: u32| {
            let site = self.ids.site + self.next_site;
            self.next_site += 1;
            let (descriptor, line) = (to_string(descriptor), lines.line(pc));
            self.names.sites.push(SiteNames { method: body.index, descriptor, dimensions, line });
            sites.first.get_or_insert(site);
            site
        };
        // What each `new` makes, and its site once it has one. Its constructor may be called in code before it.
        let mut new = FxHashMap::default();
        for instruction in code.instructions.iter().filter(|instruction| instruction.opcode == NEW) {
            let at = code.offset + instruction.pc as usize;
            let made = ArrayAllocation::of(instruction, pool).map_err(|error| error.or_at(at))?;
            new.extend(made.map(|made| (instruction.pc, (made, None))));
        }
        let mut initialised = body.initialised.iter().peekable();
        let joins = if events.stacks { code.joins() } else { Vec::new() };
        let (all_hooked, class) = (self.options.all_hooked, &self.plan.class);
        // The line whose value the thread has; 0: it may have another one.
        let mut last_line = 0;
        for (index, instruction) in code.instructions.iter().enumerate() {
            if joins.get(instruction.pc as usize) == Some(&true) {
                last_line = 0;
            }
            let (pc, at) = (instruction.pc, code.offset + instruction.pc as usize);
            if instruction.opcode == NEW {
                // With stacks its site comes before that of the call of its constructor.
                if let Some((made, site)) = new.get_mut(&pc).filter(|_| !events.stacks) {
                    site.get_or_insert_with(|| add(&made.descriptor, made.dimensions, pc));
                }
            } else if let Some(made) = ArrayAllocation::of(instruction, pool).map_err(|error| error.or_at(at))? {
                sites.here.push(Here { pc, site: add(&made.descriptor, made.dimensions, pc), needs_store: true });
            }
            if let Some(&(_, made_at)) = initialised.next_if(|(at, _)| *at == index)
                && let Some((made, site)) = new.get_mut(&made_at)
            {
                let site = *site.get_or_insert_with(|| add(&made.descriptor, made.dimensions, made_at));
                sites.objects.push((index, site));
            }
            if events.stacks && opcode::is_call(instruction.opcode) {
                let called = pool.member_ref(instruction.pool_index()).map_err(|error| error.or_at(at))?;
                let line = lines.line(pc);
                // Walks recognize a constructor by its own store.
                let needs_store = line == 0 || line != last_line || called.name == b"<init>";
                last_line = if all_hooked && hooks::stacks::keeps_value(class, &called) { line } else { 0 };
                sites.here.push(Here { pc, site: add(&hooks::called(&called), Site::CALL, pc), needs_store });
            }
        }
        // Each `new` counts as a site, those in unreachable code as well.
        let mut others: Vec<_> = new.into_iter().filter(|(_, (_, site))| site.is_none()).collect();
        others.sort_unstable_by_key(|(pc, _)| *pc);
        for (pc, (made, _)) in others {
            add(&made.descriptor, made.dimensions, pc);
        }
        Ok(sites)
    }

    /// Runs the data-flow analysis and everything that is based on it.
    fn analyse(&mut self, body: &mut Body<'_, 'a>, emit: &mut Emitter<'_>) -> Result<(), EditError> {
        let class = &self.plan.class;
        let (code, member) = (body.code, body.member);
        let is_constructor = member.name == b"<init>" && class.super_name != b"";
        let receiver = match (member.is_static(), is_constructor) {
            (true, _) => None,
            (false, true) => Some(Value::UninitializedThis),
            (false, false) => Some(Value::Reference),
        };
        let receiver_type = receiver.map(|value| match value {
            Value::UninitializedThis => VerificationType::UninitializedThis,
            _ => VerificationType::Object(class.this_class),
        });

        // JVMS §4.10: version 50 and later are verified with frames. A method of version 50 that lacks a required
        // StackMapTable is verified in the old way, and adding frames would not help.
        let table = code.attribute("StackMapTable");
        let needs_table = || {
            !code.exceptions.is_empty()
                || code.instructions.iter().any(|instruction| instruction.targets().next().is_some())
        };
        let has_frames = class.major >= 51 || (class.major == 50 && (table.is_some() || !needs_table()));
        let handlers_shared = self.plan.events.exceptions && hooks::handlers(code).values().any(|&shared| shared);
        // New frames are copied from old ones if a branch needs an island or a handler is shared. No instruction grows
        // more than an `aastore` with a scratch variable above 255: from 1 byte to 17.
        const MAY_NEED_ISLANDS: usize = i16::MAX as usize / 17;
        // With stacks all frames get more variables, so that many spell out those that they have.
        let exact = self.plan.events.stacks || is_constructor || handlers_shared || code.code.len() > MAY_NEED_ISLANDS;
        if has_frames {
            let initial = StackMap::initial_locals(receiver_type, member.descriptor, |name| {
                if exact && table.is_some() { emit.pool().class(name) } else { Ok(0) }
            })?;
            body.frames = Some(match table {
                Some(table) => StackMap::read(table, initial, code)?,
                None => StackMap { initial_locals: initial, frames: Vec::new() },
            });
        }

        let (pool, major) = (&class.pool, class.major);
        limits::check(code, pool, major, receiver.is_some(), member.descriptor, body.frames.as_ref())?;
        let at_code = |error: Malformed| Malformed { offset: error.offset.saturating_add(code.offset), ..error };

        if let Some(frames) = body.frames.as_ref().filter(|_| self.plan.events.methods) {
            let signature = Signature { receiver, descriptor: member.descriptor, class: class.name };
            body.kept = kept_locals(code, pool, signature, frames).map_err(at_code)?;
        }
        if self.plan.events.methods && self.options.leaves {
            body.leaf = Leaf::of(class, member, code, body.frames.as_ref()).map_err(at_code)?;
        }
        let makes_objects =
            self.plan.events.sites && code.instructions.iter().any(|instruction| instruction.opcode == NEW);
        let witness = self.plan.events.witness;
        if !is_constructor && !makes_objects && witness == Witness::None {
            return Ok(());
        }
        let flow = Flow::new(code, &class.pool, receiver, member.descriptor, class.name, body.frames.as_ref())
            .map_err(at_code)?;
        if is_constructor {
            body.constructor = Some(Constructor::new(code, &flow, &class.pool).map_err(at_code)?);
        }
        if makes_objects {
            let mut unpaired = 0;
            let initialised = &mut body.initialised;
            flow.visit(|index, state| {
                let instruction = &code.instructions[index];
                let Some(state) = state.filter(|_| instruction.opcode == INVOKESPECIAL) else { return };
                let Ok(called) = class.pool.member_ref(instruction.pool_index()) else { return };
                if called.name == b"<init>" {
                    match state.from_top(parameter_slots(called.descriptor)) {
                        Value::Uninitialized(pc) => initialised.push((index, pc)),
                        Value::UninitializedThis => {}
                        _ => unpaired += 1,
                    }
                }
            })
            .map_err(at_code)?;
            if unpaired > 0 {
                let why = format!("{unpaired} constructor calls cannot be paired with their new");
                self.shortfall(body.index, "allocation sites", why);
            }
        }
        if witness != Witness::None {
            let events = self.plan.events;
            let handlers = hooks::handlers(code);
            let told = hooks::Told {
                methods: events.methods,
                exceptions: events.exceptions,
                arrays: events.arrays,
                fields: events.fields,
                elements: events.elements,
                handlers: &handlers.iter().filter(|(_, shared)| !**shared).map(|(&pc, _)| pc).collect::<Vec<_>>(),
            };
            body.uses = hooks::uses(class, code, &flow, member.is_static(), witness, &told).map_err(at_code)?;
        }
        Ok(())
    }

    /// Tries to write the method with the given hooks.
    fn attempt(
        &mut self,
        body: &Body<'_, 'a>,
        wanted: Wanted,
        emit: &mut Emitter<'_>,
    ) -> Result<Option<Vec<u8>>, EditError> {
        let class = &self.plan.class;
        let code = body.code;
        let mut editor = CodeEditor::new(code);
        let has_receiver = !body.member.is_static();
        let mut frames: Option<Cow<'_, StackMap>> = body.frames.as_ref().map(Cow::Borrowed);
        let announces = wanted.calls && !body.from_vm.is_empty();
        let leaf = body.leaf.filter(|_| wanted.methods && wanted.witness == Witness::None && !announces);

        let tracked = match body.sites.first.filter(|_| wanted.stacks) {
            None => None,
            Some(first_site) => {
                let Member { name, descriptor, .. } = *body.member;
                let by_vm =
                    hooks::stacks::may_be_called_by_vm(&self.plan.name, name, descriptor, body.member.is_static());
                let has_calls = code.instructions.iter().any(|instruction| opcode::is_call(instruction.opcode));
                let tracked = Tracked::new(&mut editor, first_site, has_calls, by_vm);
                tracked.entry(&mut editor, emit);
                if let Some(frames) = &mut frames {
                    tracked.add_to(frames.to_mut(), emit.pool())?;
                }
                Some(tracked)
            }
        };
        if let Some(constructor) = &body.constructor {
            let keeps_site = constructor.is_complex && (wanted.methods || wanted.sites);
            constructor.entry(&mut editor, emit, body.id, wanted.methods, keeps_site);
            let ids = &self.ids;
            let field_places = &self.plan.field_places;
            constructor.super_calls(code, &mut editor, emit, body.id, wanted.methods, keeps_site, |field| {
                field_places.get(&field).filter(|_| wanted.fields).map(|at| ids.field_ref + at)
            });
            if keeps_site {
                let saved = editor.saved_local();
                if let Some(frames) = &mut frames {
                    constructor.add_saved_local(frames.to_mut(), saved)?;
                }
            }
        } else if let Some(leaf) = leaf {
            self.hooks.leaves += leaf.enter(&mut editor, emit, body.id, has_receiver);
        } else if wanted.methods {
            hooks::entry(&mut editor, emit, body.id, has_receiver);
        }
        self.hooks.entries += u64::from(wanted.methods && leaf.is_none());
        if announces {
            hooks::announce(&mut editor, emit, &body.from_vm);
            self.hooks.calls += 1;
        }

        let handlers = if wanted.exceptions { hooks::handlers(code) } else { Default::default() };
        let in_continuation = self.options.jdk && self.plan.name == hooks::CONTINUATION && body.member.name == b"run";
        let has_stack_size = self.options.jdk && hooks::has_stack_size(&self.plan.name);
        let mut objects = body.sites.objects.iter().filter(|_| wanted.sites).peekable();
        let mut sites = body.sites.here.iter().peekable();
        let mut uses = body.uses.iter().filter(|_| wanted.witness != Witness::None).peekable();
        for (index, instruction) in code.instructions.iter().enumerate() {
            if let Some(&is_shared) = handlers.get(&instruction.pc) {
                hooks::handle(&mut editor, emit, code, index, body.id, is_shared);
                self.hooks.handlers += 1;
            }
            while let Some(used) = uses.next_if(|used| used.index == index) {
                hooks::used(&mut editor, emit, instruction, used);
                self.hooks.witnesses += 1;
            }
            let here = sites.next_if(|here| here.pc == instruction.pc);
            let own_site = here.map(|here| here.site);
            let object = objects.next_if(|(at, _)| *at == index).map(|&(_, site)| site);
            // False for further constructor calls of the same `new`, on other paths.
            let is_next = object.is_some_and(|site| own_site == Some(site + 1));
            if let Some(leaf) = leaf {
                let here = (index, instruction);
                self.hooks.leaves += leaf.before(&mut editor, emit, here, body.id, has_receiver);
            }
            if has_stack_size {
                hooks::stack_size(&mut editor, emit, instruction, &class.pool)?;
            }
            if let (Some(tracked), true) = (tracked, opcode::is_return(instruction.opcode)) {
                tracked.restore(&mut editor, emit, instruction);
            }
            match instruction.opcode {
                op if opcode::is_return(op) && wanted.methods && leaf.is_none() => {
                    hooks::exit(&mut editor, emit, instruction, body.id);
                    self.hooks.exits += 1;
                }
                ATHROW if wanted.exceptions => {
                    hooks::throw(&mut editor, emit, instruction, body.id);
                    self.hooks.throws += 1;
                }
                AASTORE if wanted.elements => {
                    if wanted.short_elements {
                        hooks::store_element(&mut editor, emit, instruction);
                    } else {
                        hooks::put_element(&mut editor, emit, instruction);
                    }
                    self.hooks.array_updates += 1;
                }
                NEWARRAY | ANEWARRAY | MULTIANEWARRAY if wanted.arrays => {
                    let is_short = instruction.opcode == NEWARRAY
                        && !wanted.array_sites
                        && hooks::new_numbers(&mut editor, emit, instruction);
                    if is_short {
                        self.hooks.arrays += 1;
                    } else if let Some(site) = own_site {
                        match tracked {
                            Some(tracked) => tracked.array(&mut editor, emit, instruction, site),
                            None => hooks::array_allocation(&mut editor, emit, instruction, site),
                        }
                        self.hooks.arrays += 1;
                    }
                }
                INVOKESPECIAL => {
                    if let Some(site) = object {
                        match tracked {
                            None => hooks::site(&mut editor, emit, instruction, site),
                            // `Object.<init>` tells from the stack.
                            Some(_) if is_next && !wanted.methods => {}
                            Some(tracked) => tracked.object(&mut editor, emit, instruction, site),
                        }
                        self.hooks.sites += 1;
                    }
                }
                PUTFIELD | PUTSTATIC if wanted.fields => self.field_update(body, instruction, &mut editor, emit)?,
                INVOKESTATIC if in_continuation && wanted.methods => {
                    hooks::switch_stack(&mut editor, emit, instruction, &class.pool)?;
                }
                LDC | LDC_W if wanted.constants && class.pool.is_string(instruction.pool_index()) => {
                    // The short hook of a store also reports the string that is stored.
                    let next = code.instructions.get(index + 1);
                    let is_stored = wanted.short_elements && next.is_some_and(|next| next.opcode == AASTORE);
                    if !is_stored {
                        hooks::constant(&mut editor, emit, instruction);
                    }
                    self.hooks.constants += 1;
                }
                _ => {}
            }
            if let (Some(tracked), Some(&Here { site, needs_store: true, .. }), true) =
                (tracked, here, opcode::is_call(instruction.opcode))
            {
                let is_super = || body.constructor.as_ref().is_some_and(|it| it.super_calls.contains(&index));
                let called = match is_next {
                    true => Called::ConstructorOfNew,
                    false if is_super() => Called::Super,
                    false => Called::Other,
                };
                tracked.call(&mut editor, emit, instruction, site, called);
                self.hooks.call_sites += 1;
            }
            if let Some(hook) = self.plan.calls.at(instruction).filter(|_| wanted.calls) {
                let member = class.pool.member_ref(instruction.pool_index())?;
                self.hooks.calls += u64::from(hooks::call(&mut editor, emit, instruction, &member, hook));
            }
        }
        if wanted.methods && leaf.is_none() {
            self.exceptional_exits(body, &mut editor, emit);
        }
        if editor.is_empty() {
            return Ok(None);
        }
        editor.finish(frames.map(Cow::into_owned), emit.pool()).map(Some)
    }

    fn field_update(
        &mut self,
        body: &Body<'_, 'a>,
        instruction: &Instruction<'_>,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
    ) -> Result<(), EditError> {
        let field = instruction.pool_index();
        let Some(&at) = self.plan.field_places.get(&field) else { return Ok(()) };
        let id = self.ids.field_ref + at;
        if instruction.opcode == PUTSTATIC {
            let is_own = self.plan.class.pool.member_ref(field)?.class == self.plan.class.name;
            hooks::put_static(editor, emit, instruction, id, is_own);
            self.hooks.static_updates += 1;
            return Ok(());
        }
        // A store to `this` before `super(…)` cannot pass `this`; it is reported behind the super call.
        let is_early =
            body.constructor.as_ref().is_some_and(|constructor| constructor.early_stores.contains(&instruction.pc));
        if !is_early {
            hooks::put_field(editor, emit, instruction, id);
        }
        self.hooks.field_updates += 1;
        Ok(())
    }

    fn exceptional_exits(&mut self, body: &Body<'_, 'a>, editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>) {
        let this_class = VerificationType::Object(self.plan.class.this_class);
        let can_throw = |ranges: &[(u32, u32)]| hooks::can_throw(body.code, ranges, !body.member.is_static());
        let Some(constructor) = &body.constructor else {
            let all = vec![(0, body.code.code.len() as u32)];
            // Byte Buddy rejects an advice with a frame that lacks a parameter, even one that the advice overwrites.
            let is_taken = body.kept.iter().all(|&kept| kept) || !self.is_advice(body.member);
            if can_throw(&all) && is_taken {
                let locals = self.locals_of_handler(body, None, emit.pool());
                hooks::exceptional_exit(editor, emit, body.id, all, locals, false);
                self.hooks.exit_throws += 1;
            }
            return;
        };
        // The old verifier has special rules for uninitialized objects in protected code (JVMS §4.10.2.4); in such
        // methods the reader infers that the frame is gone.
        if can_throw(&constructor.before_super) && constructor.early_this_in_place && body.frames.is_some() {
            let locals = self.locals_of_handler(body, Some(VerificationType::UninitializedThis), emit.pool());
            let ranges = constructor.before_super.clone();
            hooks::exceptional_exit(editor, emit, body.id, ranges, locals, false);
            self.hooks.exit_throws += 1;
        }
        if can_throw(&constructor.after_super) {
            let has_this = constructor.this_in_place && body.frames.is_some();
            let this = if has_this { this_class } else { VerificationType::Top };
            let locals = self.locals_of_handler(body, Some(this), emit.pool());
            hooks::exceptional_exit(editor, emit, body.id, constructor.after_super.clone(), locals, has_this);
            self.hooks.exit_throws += 1;
        }
    }

    /// Local variables for the frame of a handler for the whole method: the kept ones of those on entry. `this` is the
    /// type of a constructor's receiver.
    fn locals_of_handler(
        &mut self,
        body: &Body<'_, 'a>,
        this: Option<VerificationType>,
        pool: &mut PoolBuilder,
    ) -> HandlerFrame {
        let Some(frames) = &body.frames else { return Vec::new() };
        let locals = entry_locals(frames, &body.kept, this);
        let is_exact = !locals.contains(&VerificationType::Object(0));
        // Usually the last frame has the same variables: the new one is then encoded without them and needs no
        // constants.
        let before = frames.frames.last().map_or(&frames.initial_locals, |frame| &frame.locals);
        if is_exact || (this.is_none() && locals == *before) {
            return locals;
        }
        let receiver = (!body.member.is_static()).then_some(None);
        let classes = receiver.into_iter().chain(parameters(body.member.descriptor).map(class_of));
        let exact = frames.initial_locals.iter().zip(classes).zip(&body.kept);
        let initial_locals = exact
            .map(|((&kind, class), kept)| match class.filter(|_| *kept) {
                Some(name) => self.class_constant(name, pool).map_or(VerificationType::Top, VerificationType::Object),
                None => kind,
            })
            .collect();
        entry_locals(&StackMap { initial_locals, frames: Vec::new() }, &body.kept, this)
    }

    /// Returns a class constant, an existing one if it means the same in a hidden class. `None` if the constant pool is
    /// full.
    fn class_constant(&mut self, name: &'a [u8], pool: &mut PoolBuilder) -> Option<u16> {
        let class = &self.plan.class;
        let there =
            self.classes.get_or_insert_with(|| class.pool.classes().map(|(index, name)| (name, index)).collect());
        match there.get(name).filter(|_| name != class.name) {
            Some(&index) => Some(index),
            None => pool.class(name).ok(),
        }
    }

    /// Whether the method is a template that Byte Buddy copies into other methods, judging by its annotation. The
    /// annotation may be in another package if an agent has its own copy of Byte Buddy.
    fn is_advice(&self, member: &Member<'_>) -> bool {
        let types =
            member.attribute("RuntimeVisibleAnnotations").map(|all| annotation_types(all, &self.plan.class.pool));
        let is_advice = |name: &&[u8]| {
            name.ends_with(b"/asm/Advice$OnMethodEnter;") || name.ends_with(b"/asm/Advice$OnMethodExit;")
        };
        types.unwrap_or_default().iter().any(is_advice)
    }
}

/// Local variables on entry, without those that are not kept. `this`: type of the receiver.
fn entry_locals(frames: &StackMap, kept: &[bool], this: Option<VerificationType>) -> HandlerFrame {
    let mut locals = Vec::with_capacity(kept.len());
    for (at, (&kind, &kept)) in frames.initial_locals.iter().zip(kept).enumerate() {
        match this.filter(|_| at == 0) {
            Some(this) => locals.push(this),
            None if kept => locals.push(kind),
            None => locals.extend(std::iter::repeat_n(VerificationType::Top, kind.slots())),
        }
    }
    let used = locals.iter().rposition(|kind| *kind != VerificationType::Top).map_or(0, |last| last + 1);
    locals.truncate(used);
    locals
}
