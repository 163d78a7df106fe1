//! `et.args`: the options that a run needs, in the form of java's `@file` (JDK 9 and later).

use std::path::Path;

use et_format::trace_path;

use super::runtime_dir::{AGENT, NATIVE_LIBRARY};
use super::stack_size::StackSize;

/// An option of the JVM, the releases that know it, and why it is there.
struct Flag {
    option: &'static str,
    releases: std::ops::RangeInclusive<u16>,
    #[allow(dead_code)] // for the reader of this table
    why: &'static str,
}

/// The JVM flags.
const FLAGS: &[Flag] = &[
    Flag {
        option: "-XX:+UnlockExperimentalVMOptions",
        releases: 8..=u16::MAX,
        why: "hashCode is an experimental flag from JDK 9 on",
    },
    Flag {
        option: "-XX:hashCode=0",
        releases: 8..=u16::MAX,
        why: "object ids are identity hashes; this generator has a full period, so the first 2^31-2 objects differ",
    },
    Flag {
        option: "-XX:-UseBiasedLocking",
        releases: 8..=14,
        why: "a biased lock takes the header bits that the hash needs, and a hash revokes the bias, slowly; \
              off by default from 15 on and gone later",
    },
    Flag {
        option: "-XX:+UnlockDiagnosticVMOptions",
        releases: 8..=u16::MAX,
        why: "DisableIntrinsic is a diagnostic flag",
    },
    Flag {
        option: "-XX:DisableIntrinsic=_copyOf,_copyOfRange,_multiplyToLen",
        releases: 8..=8,
        why: "as below; JDK 8 has strings of chars only",
    },
    Flag {
        option: "-XX:DisableIntrinsic=_copyOf,_copyOfRange,_multiplyToLen,_toBytesStringU",
        releases: 9..=u16::MAX,
        why: "C2's own code for Arrays.copyOf, Arrays.copyOfRange, BigInteger.multiplyToLen and StringUTF16.toBytes makes \
              arrays without their hooks; other methods that it replaces have hooks at their calls",
    },
    Flag {
        option: "-XX:-OptimizeStringConcat",
        releases: 8..=u16::MAX,
        why: "C2 merges chains of StringBuilder.append into one string, and their hooks with them",
    },
    Flag {
        option: "-XX:-EliminateAutoBox",
        releases: 8..=u16::MAX,
        why: "C2 leaves out the calls of Integer.valueOf and its like, with their hooks",
    },
    Flag {
        option: "-XX:-OmitStackTraceInFastThrow",
        releases: 8..=u16::MAX,
        why: "in hot code C2 throws one exception made beforehand again and again: no object is made, none has a backtrace",
    },
    Flag {
        option: "-XX:-DontCompileHugeMethods",
        releases: 8..=u16::MAX,
        why: "hooks push some methods past 8000 bytes of code, beyond which the JVM would only interpret them",
    },
];

/// The JVM's flags for a feature release.
pub fn flags(feature: u16) -> impl Iterator<Item = &'static str> {
    FLAGS.iter().filter(move |flag| flag.releases.contains(&feature)).map(|flag| flag.option)
}

/// Content of the file. `folder` is the output, which contains `lib/elephant-tracks`; `boot` are the options that
/// replace the boot classes, if any are needed.
pub fn text(folder: &Path, feature: u16, boot: &[String]) -> String {
    let library = folder.join("lib/elephant-tracks").join(NATIVE_LIBRARY);
    let mut out = String::new();
    for option in boot {
        out.push_str(&quoted(option));
        out.push('\n');
    }
    out.push_str(&quoted(&format!("-agentpath:{}", library.display())));
    out.push('\n');
    for flag in flags(feature) {
        out.push_str(flag);
        out.push('\n');
    }
    out.push_str(&StackSize::default().scaled().option());
    out.push('\n');
    out
}

/// The agent of every JVM of the JDK. It is found among the JDK's libraries, so that the JDK can be moved, and does nothing unless
/// a traced program has started the JVM.
pub fn agent_of_children() -> String {
    format!("-agentlib:{AGENT}={}", trace_path::CHILD_AGENT)
}

/// Options for every JVM of the JDK, whoever starts it, with `agent` among them.
pub fn for_children(feature: u16, agent: &str) -> String {
    let stacks = StackSize::default().scaled().option();
    let mut options: Vec<&str> = flags(feature).collect();
    options.extend([agent, stacks.as_str()]);
    // Other options may come before, without an end of line.
    format!("\n{}\n", options.join("\n"))
}

/// Quotes an argument as java's argument files want it: in double quotes, with backslash escapes.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'#');
    if argument.bytes().all(plain) {
        return argument.to_owned();
    }
    let mut out = String::from("\"");
    for character in argument.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biased_locking_is_only_named_where_it_exists() {
        let has = |feature| flags(feature).any(|flag| flag.contains("BiasedLocking"));
        assert!(has(8) && has(11) && has(14) && !has(15) && !has(25));
        assert!(flags(25).any(|flag| flag == "-XX:hashCode=0"));
    }

    #[test]
    fn diagnostic_flags_come_behind_what_unlocks_them() {
        for feature in [8, 11, 17, 21, 25] {
            let all: Vec<&str> = flags(feature).collect();
            let place = |start: &str| all.iter().position(|flag| flag.starts_with(start)).unwrap();
            assert!(place("-XX:+UnlockDiagnosticVMOptions") < place("-XX:DisableIntrinsic="), "{all:?}");
            assert_eq!(all.iter().filter(|flag| flag.contains("DisableIntrinsic")).count(), 1);
            assert_eq!(all.iter().any(|flag| flag.contains("_toBytesStringU")), feature > 8);
        }
    }

    #[test]
    fn awkward_paths_are_quoted() {
        assert_eq!(quoted("-agentpath:/a/b.so"), "-agentpath:/a/b.so");
        assert_eq!(quoted("/my jdk/x"), "\"/my jdk/x\"");
        assert_eq!(quoted("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
        let text = text(Path::new("/my jdk"), 17, &["--patch-module=java.base=/my jdk/b.jar".into()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "\"--patch-module=java.base=/my jdk/b.jar\"");
        assert_eq!(lines[1], "\"-agentpath:/my jdk/lib/elephant-tracks/libet_runtime.so\"");
        assert!(lines.last().is_some_and(|last| last.starts_with("-Xss")), "{text}");
    }
}
