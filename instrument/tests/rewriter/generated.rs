//! Classes that no compiler, or none at hand, produces: shared handlers, far branches, full pools, unusual
//! constructors.

use std::fmt::Write;

use et_rewriter::classfile::ClassFile;
use et_rewriter::code::opcode::*;
use et_rewriter::code::{CodeAttribute, VerificationType as Type, disassemble};
use et_rewriter::rewrite::{EventSet, Options, Rewritten};

use crate::asm::{Class, Code, STATIC};
use crate::fixtures::{options, rewrite};

/// An assembled class and how to rewrite it.
pub struct Generated {
    pub name: String,
    pub bytes: Vec<u8>,
    pub options: Options,
}

impl Generated {
    pub fn rewrite(&self) -> Rewritten {
        rewrite(&self.bytes, &self.options)
    }

    fn new(class: Class) -> Self {
        Self { name: class.name().into(), bytes: class.bytes(), options: options(EventSet::ALL) }
    }

    fn with(self, events: EventSet) -> Self {
        Self { options: options(events), ..self }
    }

    /// The code of a method after rewriting.
    fn method(&self, name: &str) -> (usize, String) {
        let rewritten = self.rewrite();
        let class = ClassFile::read(&rewritten.bytes).unwrap();
        let method = class.methods.iter().find(|method| method.name == name.as_bytes()).unwrap();
        let code = CodeAttribute::read(method.attribute("Code").unwrap(), &class.pool).unwrap();
        (code.code.len(), disassemble(&class, |found, _| found == name).unwrap())
    }

    fn shortfalls(&self) -> String {
        self.rewrite().names.shortfalls.iter().fold(String::new(), |mut text, short| {
            let _ = write!(text, "{}: {}; ", short.hooks, short.why);
            text
        })
    }
}

/// All of them; the test of the JVM loads and runs them too.
pub fn all() -> Vec<Generated> {
    let mut all = vec![
        shared_handler(52),
        shared_handler(48),
        far("Far", 52, 30_000, 1200, false),
        far("FarOld", 48, 30_000, 1200, false),
        far("FarWide", 52, 9_000, 2200, true),
        far_difference(),
        far("FarGoto", 52, 32_700, 0, false).with(EventSet::METHOD),
        no_place(),
        table_of_strings("TableShort", 7_000),
        arrays_of_numbers("NumbersShort", 12_000),
        stores("StoresLong", 3_000),
        stores("StoresShort", 6_000),
        stores("StoresNone", 16_000),
        full_pool(65_535),
        full_pool(65_528),
        several_super_calls(),
        lost_this(),
        loop_to_start(),
        subroutine_at_depth(),
        wide_ret(),
        oldest(),
        odd_tables(),
        failover(),
    ];
    all.extend(brimful());
    all
}

/// A class with a `main` that prints the results of `int f(int)` for 0 and 1.
fn printing(major: u16, name: &str, function: impl FnOnce(&mut Class) -> Code) -> Class {
    let mut class = Class::new(major, name);
    let code = function(&mut class);
    class.method(STATIC, "f", "(I)I", code);
    let f = class.method_ref(name, "f", "(I)I");
    let mut main = Code::new(2, 1);
    for argument in [ICONST_0, ICONST_1] {
        main.op(argument).index(INVOKESTATIC, f);
        class.print_int(&mut main);
    }
    main.op(RETURN);
    class.method(STATIC, "main", "([Ljava/lang/String;)V", main);
    class
}

/// A handler that ordinary control reaches too, by a jump and by falling into it.
fn shared_handler(major: u16) -> Generated {
    let name = format!("SharedHandler{major}");
    Generated::new(printing(major, &name, |class| {
        let throwable = class.class("java/lang/Throwable");
        let mut code = Code::new(2, 1);
        let (handler, normal) = (code.label(), code.label());
        let start = code.here();
        code.op(ILOAD_0).branch(IFNE, normal).op(ICONST_1).op(ICONST_0).op(IDIV).op(IRETURN);
        let end = code.here();
        code.bind(normal).frame(&[Type::Integer], &[]).op(ACONST_NULL);
        code.bind(handler).frame(&[Type::Integer], &[Type::Object(throwable)]);
        let null = code.label();
        code.branch(IFNULL, null).raw(&[BIPUSH, 7]).op(IRETURN);
        code.bind(null).frame(&[Type::Integer], &[]).raw(&[BIPUSH, 8]).op(IRETURN);
        code.catch(start, end, handler, 0);
        code
    }))
}

#[test]
fn a_shared_handler_is_entered_by_way_of_its_hook() {
    for major in [52, 48] {
        let (_, text) = shared_handler(major).method("f");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing:\n{text}"));
        assert!(at("handled") > at("java/lang/HeapProxy.exit("), "the hook is out of line:\n{text}");
        assert!(text[at("handled")..].contains("goto_w"), "{text}");
        assert_eq!(text.matches("handled").count(), 1);
    }
}

/// Stores into an array, each of four bytes.
fn store_often(code: &mut Code, times: usize) {
    for _ in 0..times {
        code.op(ALOAD_1).op(ICONST_0).op(ALOAD_1).op(AASTORE);
    }
}

/// `f` with a loop over `bytes` of code that `stores` hooks blow up: a forward and a backward branch that no longer
/// reach, an unconditional jump that does not either, and a place between for longer jumps.
fn far(name: &str, major: u16, bytes: usize, stores: usize, many_locals: bool) -> Generated {
    let mut class = Class::new(major, name);
    let objects = class.class("[Ljava/lang/Object;");
    let mut code = Code::new(4, if many_locals { 300 } else { 2 });
    let locals = [Type::Integer, Type::Object(objects)];
    let (end, middle) = (code.label(), code.label());
    code.op(ILOAD_0).branch(IFEQ, end);
    let start = code.here();
    code.frame(&locals, &[]);
    code.raw(&vec![NOP; (bytes - stores * 4) / 2]);
    store_often(&mut code, stores / 2);
    code.branch(GOTO, middle).bind(middle).frame(&locals, &[]);
    store_often(&mut code, stores - stores / 2);
    code.raw(&vec![NOP; (bytes - stores * 4) / 2]);
    code.raw(&[IINC, 0, 0xff]).op(ILOAD_0).branch(IFGT, start);
    code.bind(end).frame(&locals, &[]);
    code.op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    let f = class.method_ref(name, "f", "(I[Ljava/lang/Object;)I");
    let object = class.class("java/lang/Object");
    let mut main = Code::new(3, 1);
    for argument in [ICONST_0, ICONST_3] {
        main.op(argument).op(ICONST_1).index(ANEWARRAY, object).index(INVOKESTATIC, f);
        class.print_int(&mut main);
    }
    main.op(RETURN);
    class.method(STATIC, "main", "([Ljava/lang/String;)V", main);
    Generated::new(class)
}

/// A far branch to a frame that is written as a difference only, from a place where the difference is another one: the
/// island's frame must spell out what the method's descriptor says.
fn far_difference() -> Generated {
    let mut class = Class::new(52, "FarDifference");
    let objects = class.class("[Ljava/lang/Object;");
    let (mut code, entry) = (Code::new(4, 300), [Type::Integer, Type::Object(objects)]);
    let more = [entry[0], entry[1], Type::Integer];
    code.initial_locals = Some(entry.to_vec());
    let (end, middle, last) = (code.label(), code.label(), code.label());
    code.op(ICONST_1).op(ISTORE_2).op(ILOAD_0).branch(IFNE, middle).bind(middle).frame(&more, &[]);
    code.op(ICONST_5).op(ILOAD_0).branch(IFEQ, end).op(POP);
    code.branch(GOTO, last).bind(last).frame(&entry, &[]);
    store_often(&mut code, 2_200);
    code.op(ICONST_4);
    code.bind(end).frame(&entry, &[Type::Integer]).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    Generated::new(class)
}

#[test]
fn branches_that_outgrow_16_bits_go_by_way_of_islands() {
    for (name, bytes, stores, many_locals) in [("Far", 30_000, 1200, false), ("FarWide", 9_000, 2200, true)] {
        let class = far(name, 52, bytes, stores, many_locals);
        let (length, text) = class.method("f");
        assert!(length > 33_000, "{length}");
        assert_eq!(class.shortfalls(), "");
        assert_eq!(text.matches("goto_w").count(), 2, "one for each branch");
        assert_eq!(text.matches("putElement").count(), stores);
    }
}

#[test]
fn without_frames_conditions_are_inverted() {
    let class = far("FarOld", 48, 30_000, 1200, false);
    let (_, text) = class.method("f");
    assert_eq!(class.shortfalls(), "");
    assert!(text.contains("ifne") && text.contains("ifle"), "IFEQ and IFGT turned round");
    assert_eq!(text.matches("goto_w").count(), 2);
}

#[test]
fn a_jump_is_widened() {
    let mut class = Class::new(52, "Jump");
    let mut code = Code::new(4, 2);
    let objects = class.class("[Ljava/lang/Object;");
    let locals = [Type::Integer, Type::Object(objects)];
    let end = code.label();
    code.branch(GOTO, end).frame(&locals, &[]);
    store_often(&mut code, 3000);
    code.bind(end).frame(&locals, &[]).op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    let class = Generated::new(class);
    let (length, text) = class.method("f");
    assert!(length > 33_000, "{length}");
    assert!(text.contains("goto_w"), "{text}");
    assert_eq!(class.shortfalls(), "");
}

/// As `far`, but nowhere an instruction that control does not leave forwards: no place for an island.
fn no_place() -> Generated {
    let mut class = Class::new(52, "NoPlace");
    let objects = class.class("[Ljava/lang/Object;");
    let mut code = Code::new(4, 2);
    let end = code.label();
    code.op(ILOAD_0).branch(IFEQ, end);
    store_often(&mut code, 5000);
    code.bind(end).frame(&[Type::Integer, Type::Object(objects)], &[]).op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    Generated::new(class)
}

/// A method of `times` array stores.
fn stores(name: &str, times: usize) -> Generated {
    let mut class = Class::new(52, name);
    let mut code = Code::new(4, 2);
    store_often(&mut code, times);
    code.op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    Generated::new(class)
}

#[test]
fn stores_get_the_short_hook_before_they_get_none() {
    let count = |class: &Generated, what: &str| class.method("f").1.matches(what).count();
    let long = stores("StoresLong", 3_000);
    assert_eq!((count(&long, "putElement"), count(&long, "aastore")), (3_000, 3_000));
    let short = stores("StoresShort", 6_000);
    assert_eq!((count(&short, "storeElement"), count(&short, "aastore")), (6_000, 0));
    assert_eq!(short.shortfalls(), "");
    assert_eq!(short.rewrite().hooks.array_updates, 6_000);
    let none = stores("StoresNone", 16_000);
    assert_eq!((count(&none, "Element"), count(&none, "aastore")), (0, 16_000));
    assert_eq!(none.rewrite().hooks.array_updates, 0);
    assert_eq!(
        none.shortfalls(),
        "array updates: the method would have 176014 bytes of code, 65535 are allowed; ",
        "the first reason stands"
    );
    let (_, text) = none.method("f");
    assert!(text.contains("HeapProxy.entry") && text.contains("exitThrow"));
    let placeless = no_place();
    assert_eq!(count(&placeless, "storeElement"), 5_000);
}

/// A table of strings, `times` of them, and one string that is not stored.
fn table_of_strings(name: &str, times: usize) -> Generated {
    let mut class = Class::new(52, name);
    let text = class.string("text");
    let mut code = Code::new(4, 2);
    for _ in 0..times {
        code.op(ALOAD_1).op(ICONST_0).index(LDC_W, text).op(AASTORE);
    }
    code.index(LDC_W, text).op(POP).op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    Generated::new(class)
}

#[test]
fn the_short_hook_of_a_store_serves_the_constant_stored() {
    let count = |class: &Generated, what: &str| class.method("f").1.matches(what).count();
    let long = table_of_strings("TableLong", 2_000);
    assert_eq!((count(&long, "putElement"), count(&long, "HeapProxyCalls.constant")), (2_000, 2_001));
    let short = table_of_strings("TableShort", 7_000);
    assert_eq!((count(&short, "storeElement"), count(&short, "HeapProxyCalls.constant")), (7_000, 1));
    assert_eq!(short.rewrite().hooks.constants, 7_001);
    assert_eq!(short.shortfalls(), "");
}

/// A method of `times` arrays of longs.
fn arrays_of_numbers(name: &str, times: usize) -> Generated {
    let mut class = Class::new(52, name);
    let mut code = Code::new(4, 2);
    for _ in 0..times {
        code.op(ILOAD_0).raw(&[NEWARRAY, 11]).op(POP);
    }
    code.op(ILOAD_0).op(IRETURN);
    class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
    Generated::new(class)
}

#[test]
fn arrays_of_numbers_lose_their_sites_first() {
    let count = |class: &Generated, what: &str| class.method("f").1.matches(what).count();
    let long = arrays_of_numbers("NumbersLong", 2_000);
    assert_eq!((count(&long, "newarray"), count(&long, "allocatedArray")), (2_000, 2_000));
    let short = arrays_of_numbers("NumbersShort", 12_000);
    assert_eq!((count(&short, "newarray"), count(&short, "newLongs")), (0, 12_000));
    assert_eq!(short.rewrite().hooks.arrays, 12_000);
    let why = "the method would have 156014 bytes of code, 65535 are allowed";
    assert_eq!(short.shortfalls(), format!("sites of arrays of numbers: {why}; "));
}

/// A method of nearly 64 KB, full of one kind of hook after another: what has to go is named.
fn brimful() -> Vec<Generated> {
    let fill = |name: &str, events: EventSet, piece: &dyn Fn(&mut Class, &mut Code)| {
        let mut class = Class::new(52, name);
        class.field(STATIC, "own", "Ljava/lang/Object;");
        let mut code = Code::new(4, 2);
        while code.pc() < 65_300 {
            piece(&mut class, &mut code);
        }
        code.op(ICONST_0).op(IRETURN);
        class.method(STATIC, "f", "(I[Ljava/lang/Object;)I", code);
        Generated::new(class).with(events)
    };
    vec![
        fill("FullOfArrays", EventSet::ALL, &|_, code| {
            code.op(ILOAD_0).raw(&[NEWARRAY, 10]).op(POP);
        }),
        fill("FullOfFields", EventSet::ALL, &|class, code| {
            let own = class.field_ref(class.name().to_owned().as_str(), "own", "Ljava/lang/Object;");
            code.op(ALOAD_1).index(PUTSTATIC, own);
        }),
        fill("FullOfStatics", "update,method".parse().unwrap(), &|class, code| {
            let own = class.field_ref(class.name().to_owned().as_str(), "own", "Ljava/lang/Object;");
            code.op(ALOAD_1).index(PUTSTATIC, own);
        }),
        fill("FullOfObjects", EventSet::ALL, &|class, code| {
            let (object, init) =
                (class.class("java/lang/Object"), class.method_ref("java/lang/Object", "<init>", "()V"));
            code.index(NEW, object).op(DUP).index(INVOKESPECIAL, init).op(POP);
        }),
        fill("FullOfNothing", EventSet::METHOD, &|_, code| {
            code.raw(&[NOP; 235]);
        }),
        {
            let mut class = Class::new(52, "TooFull");
            let mut code = Code::new(4, 2);
            code.raw(&vec![NOP; 65_533]).op(ICONST_0).op(IRETURN);
            class.method(STATIC, "f", "(I)I", code);
            Generated::new(class).with(EventSet::METHOD)
        },
    ]
}

#[test]
fn what_a_full_method_goes_without_is_named() {
    let left_out = |name: &str| {
        let class = brimful().into_iter().find(|class| class.name == name).unwrap();
        let text = class.shortfalls();
        text.split(": the method would have").next().unwrap_or_default().to_owned()
    };
    assert_eq!(left_out("FullOfFields"), "field updates");
    assert_eq!(left_out("FullOfArrays"), "array allocations");
    assert_eq!(left_out("FullOfStatics"), "field updates");
    assert_eq!(left_out("FullOfObjects"), "allocation sites");
    assert_eq!(left_out("FullOfNothing"), "");
    assert_eq!(left_out("TooFull"), "all hooks");
}

/// A class with so many constants that no more (65535), or too few, can be added.
fn full_pool(entries: u16) -> Generated {
    let name = format!("Pool{entries}");
    let mut class = printing(52, &name, |class| {
        let own = class.field_ref(class.name().to_owned().as_str(), "own", "Ljava/lang/Object;");
        let object = class.class("java/lang/Object");
        let init = class.method_ref("java/lang/Object", "<init>", "()V");
        let mut code = Code::new(2, 1);
        code.index(NEW, object).op(DUP).index(INVOKESPECIAL, init).index(PUTSTATIC, own);
        code.op(ILOAD_0).op(IRETURN);
        code
    });
    class.field(STATIC, "own", "Ljava/lang/Object;");
    let mut value = 0;
    while class.pool_count() < entries {
        class.int(value);
        value += 1;
    }
    Generated::new(class)
}

#[test]
fn a_full_pool_gives_the_class_up() {
    for entries in [65_535, 65_528] {
        let class = full_pool(entries);
        let rewritten = class.rewrite();
        assert!(rewritten.bytes == class.bytes, "not a byte changes");
        assert!(rewritten.names.flags.has(et_names::ClassFlags::NOT_HOOKED));
        assert_eq!(rewritten.names.shortfalls.len(), rewritten.names.methods.len());
        assert_eq!(rewritten.names.shortfalls[0].why, "the constant pool would pass 65535 entries");
        assert_eq!((rewritten.names.sites.len(), rewritten.names.field_refs.len()), (1, 1), "ids were given out");
        assert_eq!(rewritten.hooks, Default::default());
    }
    assert!(full_pool(65_000).rewrite().names.shortfalls.is_empty());
}

/// A constructor that chooses among three calls of `super(…)`, and allocates before one of them.
fn several_super_calls() -> Generated {
    let mut class = Class::extending(52, "SeveralSupers", "java/lang/Exception");
    let this = class.class("SeveralSupers");
    let string = class.class("java/lang/String");
    let of_text = class.method_ref("java/lang/Exception", "<init>", "(Ljava/lang/String;)V");
    let of_none = class.method_ref("java/lang/Exception", "<init>", "()V");
    let copy = class.method_ref("java/lang/String", "<init>", "(Ljava/lang/String;)V");
    let text = class.string("two");
    let mut code = Code::new(4, 2);
    let early = [Type::UninitializedThis, Type::Integer];
    let (one, two, other, done) = (code.label(), code.label(), code.label(), code.label());
    code.op(ILOAD_1).branch(IFEQ, one).op(ILOAD_1).op(ICONST_1).branch(IF_ICMPEQ, two).branch(GOTO, other);
    code.bind(one).frame(&early, &[]).op(ALOAD_0).index(INVOKESPECIAL, of_none).branch(GOTO, done);
    code.bind(two).frame(&early, &[]).op(ALOAD_0).index(NEW, string).op(DUP).index(LDC_W, text);
    code.index(INVOKESPECIAL, copy).index(INVOKESPECIAL, of_text).branch(GOTO, done);
    code.bind(other).frame(&early, &[]).op(ALOAD_0).op(ACONST_NULL).index(INVOKESPECIAL, of_text);
    code.bind(done).frame(&[Type::Object(this), Type::Integer], &[]).op(RETURN);
    class.method(0, "<init>", "(I)V", code);
    let init = class.method_ref("SeveralSupers", "<init>", "(I)V");
    let mut main = Code::new(3, 1);
    for argument in [ICONST_0, ICONST_1, ICONST_2] {
        main.index(NEW, this).op(DUP).op(argument).index(INVOKESPECIAL, init);
        class.print(&mut main);
    }
    main.op(RETURN);
    class.method(STATIC, "main", "([Ljava/lang/String;)V", main);
    Generated::new(class)
}

#[test]
fn each_of_several_super_calls_is_announced() {
    let (_, text) = several_super_calls().method("<init>");
    assert_eq!(text.matches("HeapProxy.superCall").count(), 3, "{text}");
    assert_eq!(text.matches("HeapProxy.entryInit").count(), 1, "{text}");
}

/// A constructor that throws its `this` away before it throws.
fn lost_this() -> Generated {
    let mut class = Class::new(52, "LostThis");
    let this = class.class("LostThis");
    let exception = class.class("java/lang/IllegalStateException");
    let init = class.method_ref("java/lang/IllegalStateException", "<init>", "()V");
    let mut code = Code::new(2, 1);
    code.op(ACONST_NULL).op(ASTORE_0);
    code.index(NEW, exception).op(DUP).index(INVOKESPECIAL, init).op(ATHROW);
    class.method(0, "<init>", "()V", code);
    let own = class.method_ref("LostThis", "<init>", "()V");
    let mut main = Code::new(2, 1);
    let handler = main.label();
    let start = main.here();
    main.index(NEW, this).index(INVOKESPECIAL, own).op(RETURN);
    let end = main.here();
    let strings = class.class("[Ljava/lang/String;");
    main.bind(handler).frame(&[Type::Object(strings)], &[Type::Object(exception)]);
    main.catch(start, end, handler, exception);
    class.print(&mut main);
    main.op(RETURN);
    class.method(STATIC, "main", "([Ljava/lang/String;)V", main);
    Generated::new(class)
}

/// A branch to the method's first instruction: the entry is not repeated.
fn loop_to_start() -> Generated {
    Generated::new(printing(52, "LoopToStart", |_| {
        let mut code = Code::new(2, 1);
        let start = code.here();
        code.frame(&[Type::Integer], &[]);
        code.raw(&[IINC, 0, 1]).op(ILOAD_0).op(ICONST_5).branch(IF_ICMPLT, start).op(ILOAD_0).op(IRETURN);
        code
    }))
}

#[test]
fn a_branch_to_the_start_goes_behind_the_entry() {
    let (_, text) = loop_to_start().method("f");
    let iinc: Vec<&str> = text.lines().filter(|line| line.contains("iinc")).collect();
    let pc = iinc[0].trim().split(':').next().unwrap();
    assert!(pc != "0" && text.contains(&format!("if_icmplt {pc}")), "{text}");
}

/// `jsr` with a value on the stack, from two places of different depth.
fn subroutine_at_depth() -> Generated {
    Generated::new(printing(48, "SubroutineAtDepth", |_| {
        let mut code = Code::new(4, 2);
        let (deep, flat) = (code.label(), code.label());
        code.op(ILOAD_0).branch(JSR, deep).op(ILOAD_0).op(IADD).branch(JSR, deep);
        code.raw(&[ISTORE, 0]).branch(JSR, flat).op(ILOAD_0).op(IRETURN);
        code.bind(deep).op(ASTORE_1).raw(&[IINC, 0, 1]).raw(&[RET, 1]);
        code.bind(flat).op(ASTORE_1).raw(&[IINC, 0, 2]).raw(&[RET, 1]);
        code
    }))
}

/// A return address in a local variable above 255.
fn wide_ret() -> Generated {
    Generated::new(printing(48, "WideRet", |class| {
        let object = class.class("java/lang/Object");
        let init = class.method_ref("java/lang/Object", "<init>", "()V");
        let mut code = Code::new(4, 301);
        let subroutine = code.label();
        code.branch(JSR, subroutine).op(ILOAD_0).op(IRETURN);
        code.bind(subroutine).raw(&[WIDE, ASTORE, 1, 44]).raw(&[WIDE, IINC, 0, 0, 3, 0xe8]);
        code.index(NEW, object).op(DUP).index(INVOKESPECIAL, init).op(POP);
        code.raw(&[WIDE, RET, 1, 44]);
        code
    }))
}

/// A class as JDK 1.1 had them.
fn oldest() -> Generated {
    let mut bytes = printing(45, "Oldest", |class| {
        let object = class.class("java/lang/Object");
        let init = class.method_ref("java/lang/Object", "<init>", "()V");
        let mut code = Code::new(4, 1);
        let (other, done) = (code.label(), code.label());
        // An uninitialised object waits on the stack over a branch, in code that is to be protected.
        code.index(NEW, object).op(DUP).op(ILOAD_0).branch(IFEQ, other).branch(GOTO, done);
        code.bind(other).op(NOP);
        code.bind(done).index(INVOKESPECIAL, init).op(POP).op(ILOAD_0).op(IRETURN);
        code
    })
    .bytes();
    bytes[5] = 3;
    Generated { name: "Oldest".into(), bytes, options: options(EventSet::ALL) }
}

/// Debug tables that point between instructions, as bytecode tools leave them.
fn odd_tables() -> Generated {
    Generated::new(printing(48, "OddTables", |class| {
        let mut code = Code::new(2, 2);
        code.raw(&[SIPUSH, 1, 2]).raw(&[SIPUSH, 3, 4]).op(IADD).op(IRETURN);
        let (name, descriptor) = (class.utf8("x"), class.utf8("I"));
        let mut table = vec![0, 3];
        for [start, length] in [[1u16, 1], [2, 1], [4, 4]] {
            for value in [start, length, name, descriptor, 1] {
                table.extend_from_slice(&value.to_be_bytes());
            }
        }
        code.attributes.push(("LocalVariableTable".into(), table));
        code.attributes.push(("LineNumberTable".into(), vec![0, 3, 0, 1, 0, 10, 0, 2, 0, 11, 0, 5, 0, 12]));
        code.attributes.push(("RuntimeVisibleTypeAnnotations".into(), vec![0, 1, 0x40, 0xff]));
        code
    }))
}

/// Version 50 with a wrong frame: the VM fails over to the old verifier for the whole class, which has other rules for
/// constructors.
fn failover() -> Generated {
    let mut class = printing(50, "Failover", |_| {
        let mut code = Code::new(2, 1);
        let end = code.label();
        code.op(ILOAD_0).branch(IFEQ, end).op(ICONST_1).op(POP);
        code.bind(end).frame(&[Type::Float], &[]).op(ILOAD_0).op(IRETURN);
        code
    });
    let object = class.class("java/lang/Object");
    let init = class.method_ref("java/lang/Object", "<init>", "()V");
    let mut code = Code::new(3, 2);
    let other = code.label();
    code.op(ILOAD_1).branch(IFEQ, other).index(NEW, object).op(DUP).index(INVOKESPECIAL, init).op(POP);
    code.bind(other).frame(&[Type::UninitializedThis, Type::Integer], &[]);
    code.op(ALOAD_0).index(INVOKESPECIAL, init).op(RETURN);
    class.method(0, "<init>", "(I)V", code);
    Generated::new(class)
}
