//! All options, with their documentation.

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Name of the option.
    pub name: &'static str,
    /// Form of the value.
    pub value: &'static str,
    /// The default value, if there is one.
    pub default: Option<&'static str>,
    /// Documentation in Markdown, with links as in `docs/`.
    pub meaning: &'static str,
}

/// The options, the most important first.
pub const OPTIONS: [Described; 26] = [
    Described {
        name: "traceFile",
        value: "<FILE>",
        default: Some("et-%p.ettrace"),
        meaning: "where the trace goes; `%p` is replaced by the process id. `>(command)` pipes it to a shell command. \
            An existing trace is replaced; any other file is not (the JVM does not start). If another process is writing \
            a trace of that name, this one gets the process id into its name",
    },
    Described {
        name: "format",
        value: "trace|text",
        default: Some("trace"),
        meaning: "`text`: write text records instead of a trace, see [text output](runtime-options.md#text-output)",
    },
    Described {
        name: "dialect",
        value: "et|replayer|oracle|tptp",
        default: None,
        meaning: "dialect of the text ([dialects](reading-traces.md#text)), by default `et`",
    },
    Described {
        name: "namesFile",
        value: "<FILE>",
        default: None,
        meaning: "where the names file goes, which says what the ids in the text mean; `%p` is replaced by the process id",
    },
    Described {
        name: "traceTool",
        value: "<FILE>",
        default: None,
        meaning: "the `et-trace` that converts the trace to text, if not the installed one",
    },
    Described {
        name: "start",
        value: "<WHEN>",
        default: None,
        meaning: "when tracing begins, if not with the program: `method:com.acme.Main.run`, `after:30s` or `file:PATH`, \
            see [tracing part of a run](runtime-options.md#tracing-part-of-a-run)",
    },
    Described { name: "stop", value: "<WHEN>", default: None, meaning: "when tracing ends, if not with the program" },
    Described {
        name: "bufferSize",
        value: "<SIZE>",
        default: Some("8m"),
        meaning: "memory for event buffers: `512k`, `64MB`, `1.5g`, from `64k` to `2g`. It \
            limits how far the program can run ahead of the disk. With more than a few dozen threads, buffers are added",
    },
    Described {
        name: "patience",
        value: "<TIME>",
        default: Some("60s"),
        meaning: "how long the program waits for the reader of its trace, if that is a command, a pipe, or the text conversion \
            (`ms`, `s`, `m`): while it runs, for the reader to take anything; after it has ended, for the reader to take \
            everything. See [stalled readers](runtime-options.md#stalled-readers)",
    },
    Described {
        name: "optionsFile",
        value: "<FILE>",
        default: None,
        meaning: "a file with more options, one `name=value` per line; `#` starts a comment",
    },
    Described {
        name: "names",
        value: "<LIST>",
        default: None,
        meaning: "more jars, folders or `.etn` files with names tables, separated by `:`. Those of the JDK, the \
            class path (with `Class-Path` of manifests), the module paths and `-Xbootclasspath/a` are found anyway, and so is the \
            `Foo.class.etn` of a class instrumented by itself, anywhere in a folder of the class path",
    },
    Described {
        name: "dynamic",
        value: "on|off",
        default: Some("on"),
        meaning: "whether classes created at run time, and classes that were not instrumented ahead of time, get \
            hooks when they are defined",
    },
    Described {
        name: "dynamicExclude",
        value: "<PATTERNS>",
        default: None,
        meaning: "classes that get no hooks at run time: patterns as for `et-instrument --exclude`, separated by `,`",
    },
    Described {
        name: "deaths",
        value: "trace|gc|gc/N",
        default: Some("trace"),
        meaning: "`gc`: also record which objects the collector frees, which slows down the run; `gc/N`: only for about \
            one in N objects. For [`et-trace compare-deaths`](evidence/deaths.md)",
    },
    Described {
        name: "stacks",
        value: "<NUMBER>",
        default: Some("8000000"),
        meaning: "with [stacks](stacks.md): how many frames of different stacks are kept apart, at up to 48 bytes each; of further stacks only \
            the nearest callers are recorded",
    },
    Described {
        name: "counts",
        value: "off|<TIME>",
        default: Some("off"),
        meaning: "only count allocations, by stack and class, in slices of this length (`10ms` to `60m`; units as for `patience`): \
            see [counts](stacks.md#counts-only). `et-instrument run --events counts` sets it to `1s`",
    },
    Described {
        name: "survival",
        value: "<PERCENT>",
        default: Some("0"),
        meaning: "after collections, look which objects are still there; walks through the heap take at most this share of the time, \
            from `0` (never) to `50`: see [survival](stacks.md#does-it-survive). `et-instrument run --mode objects` sets it to `5`",
    },
    Described {
        name: "monitors",
        value: "on|off",
        default: Some("off"),
        meaning: "`on`: also record which threads wait for a monitor that another has, and `Object.wait`, with how long it took: \
            see [contention](runtime-options.md#contention)",
    },
    Described {
        name: "ddm",
        value: "on|off|<OPTIONS>",
        default: Some("off"),
        meaning: "`on`: [monitors](monitor.md) can look into the run, as into one with [their agent](monitor-agent.md), and see what it allocates by \
            class, site and callers; or options of that agent: `port=8601,debug=on`",
    },
    Described {
        name: "xml",
        value: "<FILE>",
        default: None,
        meaning: "also write a [log for the viewers of TPTP](monitor-agent.md#logs-for-tptp): threads, monitors, collections; `%p` is replaced by the \
            process id",
    },
    Described {
        name: "profile",
        value: "heap|off",
        default: Some("off"),
        meaning: "`heap`: allocations and deaths go to that log",
    },
    Described {
        name: "filter",
        value: "<FILE>|<LINES>",
        default: None,
        meaning: "of which classes: a filter file of TPTP, or its lines with `;` between them: `com.acme.* INCLUDE;* EXCLUDE`",
    },
    Described {
        name: "writers",
        value: "auto|<NUMBER>",
        default: Some("auto"),
        meaning: "most threads of the runtime's own that compress the trace at a time, from `1` to `64`; `auto`: half as many as \
            there are processors, at least one. There are more than one only while the program is ahead of them; a thread of \
            the program that would have to wait for them [compresses a buffer itself](runtime-options.md#writers)",
    },
    Described {
        name: "discard",
        value: "on|off",
        default: Some("off"),
        meaning: "for measurements: discard full buffers unread; their events are not even counted. The result is not \
            a usable trace",
    },
    Described {
        name: "ids",
        value: "auto|mark|hash|tags",
        default: Some("auto"),
        meaning: "how objects get their [ids](runtime-options.md#object-ids); `auto` uses the first of the three that \
            works",
    },
    Described {
        name: "program",
        value: "<TEXT>",
        default: None,
        meaning: "the name of the program in the output of `et-trace`. `et-instrument run` sets it to the command as typed; by default it is \
            the main class or the jar, with the arguments",
    },
];

/// Options of earlier versions, accepted with a note, and why they have no effect. `namesFile` has one for a text.
pub const OUTDATED: [(&str, &str); 3] = [
    ("classPath", "classes are rewritten before the run"),
    ("javaPath", "classes are rewritten before the run"),
    ("namesFile", "the names are in the trace; et-trace text --names writes them"),
];

pub(super) fn is_known(name: &str) -> bool {
    OPTIONS.iter().any(|option| option.name == name) || OUTDATED.iter().any(|(outdated, _)| *outdated == name)
}

/// Names of all options, for the message about an unknown one.
pub(super) fn names() -> String {
    OPTIONS.map(|option| option.name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Sources};
    use super::*;

    fn read(text: &str) -> Options {
        Options::read(&Sources { agent: text.into(), ..Sources::default() }, 7).unwrap()
    }

    #[test]
    fn defaults_are_those_that_are_told() {
        let plain = read("");
        for option in OPTIONS {
            let Some(default) = option.default else { continue };
            let mut given = read(&format!("{}={default}", option.name));
            given.given.clear();
            assert_eq!(format!("{given:?}"), format!("{plain:?}"), "{}", option.name);
        }
    }
}
