//! Limits of the class file format, damaged input, and the data flow of odd code.

use std::time::{Duration, Instant};

use et_names::ClassFlags;
use et_rewriter::classfile::ClassFile;
use et_rewriter::code::opcode::*;
use et_rewriter::code::{CodeAttribute, Flow, Value, VerificationType as Type};
use et_rewriter::rewrite::{ClassError, EventSet, Options, Plan, Rewritten};

use crate::asm::{Class, Code, STATIC};
use crate::fixtures::{FIRST, Fixture, options};

fn try_rewrite(bytes: &[u8]) -> Result<Rewritten, ClassError> {
    let options = options(EventSet::ALL);
    let started = Instant::now();
    let result = Plan::new(bytes, true, &options).and_then(|plan| plan.rewrite(FIRST, &options));
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    result
}

fn class_of(major: u16, access: u16, name: &str, descriptor: &str, code: Code) -> Vec<u8> {
    let mut class = Class::new(major, "Edge");
    class.method(access, name, descriptor, code);
    class.bytes()
}

fn why(rewritten: &Rewritten) -> String {
    let shortfalls = &rewritten.names.shortfalls;
    shortfalls.iter().map(|short| format!("{}: {}", short.hooks, short.why)).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_full_exception_table_leaves_the_method_alone() {
    let mut code = Code::new(1, 1);
    let start = code.here();
    code.op(ALOAD_0).op(ARRAYLENGTH).op(IRETURN);
    let handler = code.here();
    code.op(POP).op(ICONST_0).op(IRETURN);
    for _ in 0..65_535 {
        code.catch(start, handler, handler, 0);
    }
    let bytes = class_of(48, STATIC, "f", "([I)I", code);
    let rewritten = try_rewrite(&bytes).unwrap();
    assert_eq!(why(&rewritten), "all hooks: the method would need more than 65535 exception table entries");
}

#[test]
fn full_attribute_tables_leave_method_and_class_alone() {
    let mut class = Class::new(52, "Edge");
    let mut code = Code::new(1, 1);
    code.op(ALOAD_0).op(ARRAYLENGTH).op(IRETURN);
    code.attributes = vec![("X".into(), Vec::new()); 65_535];
    class.method(STATIC, "f", "([I)I", code);
    let rewritten = try_rewrite(&class.bytes()).unwrap();
    assert_eq!(why(&rewritten), "all hooks: the method would need more than 65535 attributes");

    let mut class = Class::new(52, "Edge");
    let mut code = Code::new(1, 1);
    code.op(ICONST_0).op(IRETURN);
    class.method(STATIC, "f", "()I", code);
    class.attributes = vec![("X".into(), Vec::new()); 65_535];
    let bytes = class.bytes();
    let rewritten = try_rewrite(&bytes).unwrap();
    assert_eq!(why(&rewritten), "all hooks: the class would have more than 65535 attributes");
    assert!(rewritten.bytes == bytes && rewritten.names.flags.has(ClassFlags::NOT_HOOKED));
}

#[test]
fn a_method_without_room_for_slots_loses_only_what_needs_them() {
    let mut code = Code::new(3, 65_535);
    code.op(ALOAD_0).op(ICONST_0).op(ALOAD_0).op(AASTORE).op(RETURN);
    let rewritten = try_rewrite(&class_of(52, STATIC, "f", "([Ljava/lang/Object;)V", code)).unwrap();
    assert_eq!(why(&rewritten), "");
    assert_eq!((rewritten.hooks.array_updates, rewritten.hooks.entries), (1, 1));

    let mut code = Code::new(65_535, 1);
    code.op(RETURN);
    let rewritten = try_rewrite(&class_of(52, STATIC, "f", "()V", code)).unwrap();
    assert_eq!(why(&rewritten), "all hooks: the method would need more than 65535 stack slots or local variables");
}

#[test]
fn a_frame_between_instructions_is_refused() {
    let mut code = Code::new(1, 1);
    code.raw(&[SIPUSH]).frame(&[], &[]).raw(&[0, 0]).op(POP).op(RETURN);
    let error = try_rewrite(&class_of(52, STATIC, "f", "()V", code)).unwrap_err();
    assert!(error.to_string().contains("a stack map frame at 1, where no instruction begins"), "{error}");
}

#[test]
fn frames_without_bounds_are_refused_before_they_fill_the_memory() {
    // Each of 60000 frames appends three local variables to those of the one before.
    let mut code = Code::new(1, 65_535);
    code.raw(&vec![NOP; 60_000]).op(RETURN);
    let mut table = 60_000u16.to_be_bytes().to_vec();
    for _ in 0..60_000 {
        table.extend_from_slice(&[254, 0, 0, 0, 0, 0]);
    }
    code.attributes.push(("StackMapTable".into(), table));
    let error = try_rewrite(&class_of(52, STATIC, "f", "()V", code)).unwrap_err();
    assert!(error.to_string().contains("the stack map frames are too large"), "{error}");

    let mut code = Code::new(1, 1);
    code.frame(&[Type::Long], &[]).op(RETURN);
    let error = try_rewrite(&class_of(52, STATIC, "f", "()V", code)).unwrap_err();
    assert!(error.to_string().contains("more local variables than the method has"), "{error}");
}

#[test]
fn a_far_local_variable_in_many_frames_is_not_filled_up_to() {
    let mut class = Class::new(52, "Edge");
    let init = class.method_ref("java/lang/Object", "<init>", "()V");
    let array = class.class("java/lang/Object");
    let mut code = Code::new(2, 60_000);
    code.op(ICONST_0).index(ANEWARRAY, array).op(POP);
    for _ in 0..20_000 {
        code.frame(&[Type::UninitializedThis], &[]).op(NOP);
    }
    code.op(ALOAD_0).index(INVOKESPECIAL, init).op(RETURN);
    class.method(0, "<init>", "()V", code);
    let rewritten = try_rewrite(&class.bytes()).unwrap();
    assert!(why(&rewritten).starts_with("all hooks: "), "{}", why(&rewritten));
}

#[test]
fn tangled_flow_ends_soon() {
    // Old code, every instruction in 10000 protected ranges, each store a change for their handlers.
    let mut code = Code::new(2, 3_000);
    let start = code.here();
    for local in 0..3_000u16 {
        code.op(ACONST_NULL).raw(&[WIDE, ASTORE]).raw(&local.to_be_bytes());
    }
    let end = code.here();
    let mut handlers = Vec::new();
    for _ in 0..10_000 {
        handlers.push(code.here());
        code.op(POP).op(RETURN);
    }
    for handler in handlers {
        code.catch(start, end, handler, 0);
    }
    let mut class = Class::new(48, "Edge");
    let object = class.class("java/lang/Object");
    code.index(NEW, object).op(POP).op(RETURN);
    class.method(STATIC, "f", "()V", code);
    let error = try_rewrite(&class.bytes()).unwrap_err();
    assert!(error.to_string().contains("too tangled to follow"), "{error}");
}

#[test]
fn many_far_branches_end_soon() {
    // As many conditional branches as fit, each with its own far target, and places for islands everywhere.
    let mut class = Class::new(52, "Edge");
    let objects = class.class("[Ljava/lang/Object;");
    let locals = [Type::Integer, Type::Object(objects)];
    let mut code = Code::new(4, 2);
    let targets: Vec<_> = (0..4_000).map(|_| code.label()).collect();
    for &target in &targets {
        code.op(ILOAD_0).branch(IFEQ, target);
    }
    for _ in 0..2_000 {
        let next = code.label();
        code.branch(GOTO, next).bind(next).frame(&locals, &[]);
    }
    for _ in 0..1_000 {
        code.op(ALOAD_1).op(ICONST_0).op(ALOAD_1).op(AASTORE);
    }
    code.raw(&[NOP; 2_000]);
    for &target in &targets {
        code.bind(target).frame(&locals, &[]).op(ICONST_0).op(IRETURN);
    }
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    let bytes = class.bytes();
    let options = options(EventSet::UPDATE);
    let started = Instant::now();
    let rewritten = Plan::new(&bytes, true, &options).unwrap().rewrite(FIRST, &options).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    assert_eq!((why(&rewritten), rewritten.hooks.array_updates), (String::new(), 1_000));
    let class = ClassFile::read(&rewritten.bytes).unwrap();
    let code = CodeAttribute::read(class.methods[0].attribute("Code").unwrap(), &class.pool).unwrap();
    let islands = code.instructions.iter().filter(|instruction| instruction.opcode == GOTO_W).count();
    assert!(islands > 500, "{islands} islands");
}

#[test]
fn many_updates_and_shared_handlers_end_soon() {
    let mut class = Class::new(52, "Edge");
    let throwable = class.class("java/lang/Throwable");
    let mut code = Code::new(2, 1);
    let start = code.here();
    code.op(ALOAD_0).op(POP).op(ACONST_NULL);
    let end = code.here();
    for _ in 0..5_000 {
        let handler = code.here();
        // Ordinary control falls into each of them.
        code.frame(&[Type::Top], &[Type::Object(throwable)]).op(NOP);
        for _ in 0..10 {
            code.catch(start, end, handler, 0);
        }
    }
    code.op(POP).op(RETURN);
    class.method(STATIC, "f", "(I)V", code);
    for number in 0..12_000 {
        class.field_ref("Edge", &format!("f{number}"), "Ljava/lang/Object;");
    }
    let first = class.field_ref("Edge", "f0", "Ljava/lang/Object;");
    for method in 0..20 {
        let mut code = Code::new(1, 0);
        for number in 0..12_000u16 {
            // A name, a signature and a reference for each.
            code.op(ACONST_NULL).index(PUTSTATIC, first + number * 3);
        }
        code.op(RETURN);
        class.method(STATIC, &format!("g{method}"), "()V", code);
    }
    let rewritten = try_rewrite(&class.bytes()).unwrap();
    assert_eq!(rewritten.names.field_refs.len(), 12_000);
}

#[test]
fn versions_out_of_range_are_refused() {
    let mut bytes = Class::new(52, "Edge").bytes();
    for (major, minor, what) in [(45, 2, "45.2 is older"), (44, 3, "44.3 is older"), (72, 0, "72.0 is newer")] {
        (bytes[5], bytes[7]) = (minor, major);
        let error = try_rewrite(&bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    (bytes[5], bytes[7]) = (3, 45);
    try_rewrite(&bytes).unwrap();
}

#[test]
fn what_others_rely_on_stays_in_excluded_classes() {
    for fixture in Fixture::all().into_iter().filter(|fixture| fixture.is_jdk) {
        let plan = Plan::new(&fixture.bytes, false, &fixture.options).unwrap();
        let rewritten = plan.rewrite(FIRST, &fixture.options).unwrap();
        let class = ClassFile::read(&rewritten.bytes).unwrap();
        match plan.class_name() {
            "java/lang/Object" => assert_eq!((rewritten.hooks.objects, rewritten.hooks.entries), (1, 0)),
            "java/lang/Thread" => {
                assert!(class.fields.iter().any(|field| field.name == b"etPos"));
                assert!(rewritten.names.flags.has(ClassFlags::NOT_HOOKED));
                assert_eq!(rewritten.hooks, Default::default());
            }
            // Marked, so that the runtime leaves it alone, too.
            _ => {
                let mark = class.attribute(et_rewriter::rewrite::ATTRIBUTE).unwrap();
                assert_eq!(mark.info.last(), Some(&0));
                assert_eq!(rewritten.hooks, Default::default());
            }
        }
    }
}

#[test]
fn a_rewritten_class_is_not_rewritten_again() {
    let fixture = Fixture::all().into_iter().find(|fixture| fixture.name == "Arrays").unwrap();
    let again = Plan::new(&fixture.rewrite().bytes, true, &fixture.options).map(|_| ());
    assert!(matches!(again, Err(ClassError::AlreadyInstrumented { artifact: 0x1234_5678_9abc_def0, .. })), "{again:?}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for fixture in Fixture::all() {
        assert!(fixture.rewrite().bytes == fixture.rewrite().bytes, "{}", fixture.name);
    }
}

/// The states before the instructions of the first method.
fn states(bytes: &[u8], receiver: Option<Value>) -> Vec<Option<et_rewriter::code::State>> {
    let class = ClassFile::read(bytes).unwrap();
    let method = &class.methods[0];
    let code = CodeAttribute::read(method.attribute("Code").unwrap(), &class.pool).unwrap();
    let flow = Flow::new(&code, &class.pool, receiver, method.descriptor, class.name, None).unwrap();
    let mut states = Vec::new();
    flow.visit(|_, state| states.push(state.cloned())).unwrap();
    states
}

#[test]
fn the_dup_family_moves_slots() {
    use Value::{Reference as R, Wide as L, WideHigh as H, Word as I};
    let after = |ops: &[u8]| {
        let mut code = Code::new(10, 4);
        code.raw(ops);
        code.op(RETURN);
        let states = states(&class_of(48, STATIC, "f", "()V", code), None);
        states[ops.len()].clone().unwrap().stack
    };
    assert_eq!(after(&[LCONST_0, DCONST_0, DUP2_X2]), [L, H, L, H, L, H]);
    assert_eq!(after(&[ICONST_0, ACONST_NULL, LCONST_0, DUP2_X2]), [L, H, I, R, L, H]);
    assert_eq!(after(&[LCONST_0, ICONST_0, ACONST_NULL, DUP2_X2]), [I, R, L, H, I, R]);
    assert_eq!(after(&[ACONST_NULL, LCONST_0, DUP2_X1]), [L, H, R, L, H]);
    assert_eq!(after(&[LCONST_0, ACONST_NULL, DUP_X2]), [R, L, H, R]);
    assert_eq!(after(&[ICONST_0, ACONST_NULL, SWAP]), [R, I]);
    assert_eq!(after(&[LCONST_0, LSTORE_1, ACONST_NULL, ASTORE_2, ALOAD_1]), [Value::Top], "half a long is no value");
    assert_eq!(after(&[LCONST_0, L2I, I2D, D2F]), [I]);
    assert_eq!(after(&[LCONST_0, DCONST_0, DCMPL]), [I], "whatever the types, four slots become one");
}

#[test]
fn a_new_is_paired_over_branches_and_subroutines() {
    let mut class = Class::new(48, "Edge");
    let object = class.class("java/lang/Object");
    let init = class.method_ref("java/lang/Object", "<init>", "()V");
    let mut code = Code::new(6, 3);
    let (other, join, subroutine) = (code.label(), code.label(), code.label());
    let outer = code.pc() as u32;
    code.index(NEW, object).op(DUP).op(ASTORE_1);
    code.op(ILOAD_0).branch(IFEQ, other);
    let inner = code.pc() as u32;
    code.index(NEW, object).op(DUP).index(INVOKESPECIAL, init).op(POP).branch(GOTO, join);
    code.bind(other).branch(JSR, subroutine);
    code.bind(join).op(NOP).index(INVOKESPECIAL, init).op(ALOAD_1).op(ARETURN);
    code.bind(subroutine).op(ASTORE_2).raw(&[RET, 2]);
    class.method(STATIC, "f", "(I)Ljava/lang/Object;", code);
    let states = states(&class.bytes(), None);
    let bottoms: Vec<_> = states.iter().flatten().filter_map(|state| state.stack.first().copied()).collect();
    assert!(bottoms.contains(&Value::Uninitialized(outer)));
    let join = &states[states.len() - 6].clone().unwrap();
    assert_eq!(
        (join.stack.as_slice(), join.locals[1]),
        (&[Value::Uninitialized(outer)][..], Value::Uninitialized(outer))
    );
    assert!(states.iter().flatten().any(|state| state.stack.last() == Some(&Value::Uninitialized(inner))));
    let end = &states[states.len() - 3].clone().unwrap();
    assert_eq!(end.stack, [Value::Reference], "initialised in the local variable as well");
}

#[test]
fn a_constructor_knows_whether_it_called_super() {
    let mut class = Class::new(48, "Edge");
    let init = class.method_ref("java/lang/Object", "<init>", "()V");
    let mut code = Code::new(2, 2);
    code.op(ALOAD_0).op(ACONST_NULL).op(ASTORE_0).index(INVOKESPECIAL, init).op(RETURN);
    class.method(0, "<init>", "()V", code);
    let states = states(&class.bytes(), Some(Value::UninitializedThis));
    let before: Vec<bool> = states.iter().map(|state| state.as_ref().unwrap().before_super).collect();
    assert_eq!(before, [true, true, true, true, false]);
}

#[test]
fn a_method_event_alone_hooks_no_allocation() {
    let fixture = Fixture::all().into_iter().find(|fixture| fixture.name == "Allocations").unwrap();
    for (events, entries, sites, exits) in [("method", true, false, true), ("alloc", false, true, false)] {
        let options = Options { events: events.parse().unwrap(), ..fixture.options.clone() };
        let rewritten = Plan::new(&fixture.bytes, true, &options).unwrap().rewrite(FIRST, &options).unwrap();
        let hooks = rewritten.hooks;
        assert_eq!((hooks.entries > 0, hooks.sites > 0, hooks.exits > 0), (entries, sites, exits), "{events}");
        assert_eq!(rewritten.names.sites.len() as u64 > 0, sites);
    }
}

#[test]
fn type_annotations_move_with_the_code() {
    let mut class = Class::new(52, "Edge");
    let (object, annotation) = (class.class("java/lang/Object"), class.utf8("LMark;"));
    let mut code = Code::new(2, 2);
    code.op(ICONST_0).op(ISTORE_1);
    let created = code.pc() as u16;
    code.op(ILOAD_1).index(ANEWARRAY, object).op(ARETURN);
    let end = code.pc() as u16;
    let [type_high, type_low] = annotation.to_be_bytes();
    // One @Mark each, without a path and without values: a variable, a caught type, an object made, a cast.
    let mut table = vec![0, 4];
    table.extend_from_slice(&[
        0x40,
        0,
        1,
        0,
        created as u8,
        0,
        (end - created) as u8,
        0,
        1,
        0,
        type_high,
        type_low,
        0,
        0,
    ]);
    table.extend_from_slice(&[0x42, 0, 7, 0, type_high, type_low, 0, 0]);
    table.extend_from_slice(&[0x44, 0, created as u8 + 1, 0, type_high, type_low, 0, 0]);
    table.extend_from_slice(&[0x47, 0, created as u8, 3, 0, type_high, type_low, 0, 0]);
    code.attributes.push(("RuntimeInvisibleTypeAnnotations".into(), table));
    class.method(STATIC, "f", "(I)[Ljava/lang/Object;", code);
    let rewritten = try_rewrite(&class.bytes()).unwrap();
    let class = ClassFile::read(&rewritten.bytes).unwrap();
    let code = CodeAttribute::read(class.methods[0].attribute("Code").unwrap(), &class.pool).unwrap();
    let info = code.attribute("RuntimeInvisibleTypeAnnotations").unwrap().info;
    let at = |opcode: u8| code.instructions.iter().find(|found| found.opcode == opcode).unwrap().pc as u8;
    let (load, made) = (at(ILOAD_1), at(ANEWARRAY));
    // The entry hook and the variable's store are before it, everything up to the handler within.
    let handler = code.exceptions[0].handler as u8;
    assert_eq!(info[2..9], [0x40, 0, 1, 0, load, 0, handler - load]);
    assert_eq!(info[16..19], [0x42, 0, 7]);
    assert_eq!(info[24..27], [0x44, 0, made]);
    assert_eq!(info[32..36], [0x47, 0, load, 3]);
}
