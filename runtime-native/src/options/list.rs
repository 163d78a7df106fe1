//! All options there are, with what the docs say of each.

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// What it is given by.
    pub name: &'static str,
    /// What it takes.
    pub value: &'static str,
    /// What counts if it is not given: a value, or none.
    pub default: Option<&'static str>,
    /// What it does, in Markdown with links as in `docs/`.
    pub meaning: &'static str,
}

/// The options, those that are needed most first.
pub const OPTIONS: [Described; 17] = [
    Described {
        name: "traceFile",
        value: "<FILE>",
        default: Some("et-%p.ettrace"),
        meaning: "where the trace goes; `%p` becomes the process id. `>(command)` hands it to a shell command on its \
            standard input. A trace that is there is replaced; a file that is no trace is not (the JVM does not start); \
            a trace that another process is writing is left alone, and this one gets the process id into its name",
    },
    Described {
        name: "format",
        value: "trace|text",
        default: Some("trace"),
        meaning: "`text`: text records are written in place of the trace, see \
            [text at once](runtime-options.md#text-at-once)",
    },
    Described {
        name: "dialect",
        value: "et|replayer|oracle",
        default: None,
        meaning: "of the text ([dialects](reading-traces.md#text)), `et` if it is not given",
    },
    Described {
        name: "namesFile",
        value: "<FILE>",
        default: None,
        meaning: "where what the ids in the text mean goes; `%p` becomes the process id",
    },
    Described {
        name: "traceTool",
        value: "<FILE>",
        default: None,
        meaning: "the `et-trace` that makes the text, if not that of the installation",
    },
    Described {
        name: "start",
        value: "<WHEN>",
        default: None,
        meaning: "when tracing begins, if not with the program: `method:com.acme.Main.run`, `after:30s` or `file:PATH`, \
            see [a part of the run](runtime-options.md#a-part-of-the-run)",
    },
    Described { name: "stop", value: "<WHEN>", default: None, meaning: "when tracing ends, if not with the program" },
    Described {
        name: "bufferSize",
        value: "<SIZE>",
        default: Some("8m"),
        meaning: "memory for events on their way to the file: a number with `k`, `m` or `g`, from `64k` to `2g`. It \
            bounds how far the program may run ahead of the disk. Threads beyond a few dozen get buffers on top",
    },
    Described {
        name: "patience",
        value: "<TIME>",
        default: Some("60s"),
        meaning: "how long the program waits for who reads its trace, if that is a command, a pipe, or what makes the text \
            (`ms`, `s`, `m`): for something to be taken while it runs, for all that is left once it has ended. See \
            [readers that stand still](runtime-options.md#readers-that-stand-still)",
    },
    Described {
        name: "optionsFile",
        value: "<FILE>",
        default: None,
        meaning: "a file with more options, `name=value`, one a line; `#` starts a comment",
    },
    Described {
        name: "names",
        value: "<LIST>",
        default: None,
        meaning: "more jars, folders or `.etn` files to take names tables from, joined by `:`. Those of the JDK, the \
            class path (with `Class-Path` of manifests), the module paths and `-Xbootclasspath/a` are found anyway; so is the \
            `Foo.class.etn` of a class instrumented by itself, in a folder of the class path or below",
    },
    Described {
        name: "dynamic",
        value: "on|off",
        default: Some("on"),
        meaning: "whether classes that the program makes while it runs, and classes that were not rewritten before, get \
            hooks when they are defined",
    },
    Described {
        name: "dynamicExclude",
        value: "<PATTERNS>",
        default: None,
        meaning: "classes that do not: patterns as for `et-instrument --exclude`, joined by `,`",
    },
    Described {
        name: "deaths",
        value: "trace|gc|gc/N",
        default: Some("trace"),
        meaning: "`gc`: the collector is asked as well which objects it freed, which makes the run slower; `gc/N`: about \
            one in N objects. For [`et-trace compare-deaths`](deaths.md)",
    },
    Described {
        name: "discard",
        value: "on|off",
        default: Some("off"),
        meaning: "for measuring: events are thrown away when a buffer is full, and counted as lost. What is left is \
            not the trace of anything",
    },
    Described {
        name: "ids",
        value: "auto|mark|hash|tags",
        default: Some("auto"),
        meaning: "how objects get their [ids](runtime-options.md#object-ids); `auto` takes the first of the three that \
            works",
    },
    Described {
        name: "program",
        value: "<TEXT>",
        default: None,
        meaning: "what `et-trace` calls the program: `et-instrument run` gives the command as it was typed. Without, it is \
            the main class or the jar, with the arguments",
    },
];

/// Options of earlier versions, which are taken with a note, and why they do nothing. `namesFile` does something for a text.
pub const OUTDATED: [(&str, &str); 3] = [
    ("classPath", "classes are rewritten before the run"),
    ("javaPath", "classes are rewritten before the run"),
    ("namesFile", "the names are in the trace; et-trace text --names writes them"),
];

pub(super) fn is_known(name: &str) -> bool {
    OPTIONS.iter().any(|option| option.name == name) || OUTDATED.iter().any(|(outdated, _)| *outdated == name)
}

/// For whoever misspelt one.
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
