//! Parses the command line of `java`.

use std::ffi::OsString;

/// Options whose value is the next argument. Their long forms also accept it after a `=`.
const WITH_NEXT: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--limit-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--patch-module",
    "--enable-native-access",
    "--illegal-native-access",
    "-m",
    "--module",
    "-d",
    "--describe-module",
    "--source",
];

/// Whether an option's value is the next argument.
pub fn takes_next(option: &str) -> bool {
    WITH_NEXT.contains(&option)
}

/// An option as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaOption {
    /// Up to the value, separator included: `-cp`, `--class-path=`, `-javaagent:`, `-Xmx1g`.
    pub name: String,
    /// The value, if this is an option that we know to have one.
    pub value: Option<String>,
    /// Whether the value is a separate argument.
    apart: bool,
}

/// The meaning of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `-cp` and its synonyms.
    ClassPath,
    /// `-p`, `--module-path`.
    ModulePath,
    /// `--upgrade-module-path`.
    UpgradeModulePath,
    /// `--patch-module`: `MODULE=PATHS`.
    PatchModule,
    /// `-Xbootclasspath/a:`.
    BootClassPath,
    /// `-javaagent:`: `JAR=OPTIONS`.
    Agent,
    /// `-Det.…=`: an option of the runtime.
    Runtime,
    /// Not relevant here; passed on.
    Other,
}

impl JavaOption {
    /// An option with a value joined to its name.
    pub fn joined(name: &str, value: String) -> Self {
        Self { name: name.into(), value: Some(value), apart: false }
    }

    /// Creates an option whose value is the next argument.
    pub fn apart(name: &str, value: String) -> Self {
        Self { name: name.into(), value: Some(value), apart: true }
    }

    fn parse(argument: &str) -> Self {
        let split = ["-javaagent:", "-Xbootclasspath/a:"].into_iter().find(|name| argument.starts_with(name));
        let end = match split {
            Some(name) => Some(name.len()),
            None if argument.starts_with("--") || argument.starts_with("-Det.") => argument.find('=').map(|at| at + 1),
            None => None,
        };
        match end {
            Some(end) => Self::joined(&argument[..end], argument[end..].into()),
            None => Self { name: argument.into(), value: None, apart: false },
        }
    }

    /// The meaning of its value.
    pub fn role(&self) -> Role {
        match self.name.trim_end_matches('=') {
            "-cp" | "-classpath" | "--class-path" => Role::ClassPath,
            "-p" | "--module-path" => Role::ModulePath,
            "--upgrade-module-path" => Role::UpgradeModulePath,
            "--patch-module" => Role::PatchModule,
            "-Xbootclasspath/a:" => Role::BootClassPath,
            "-javaagent:" => Role::Agent,
            name if name.starts_with("-Det.") => Role::Runtime,
            _ => Role::Other,
        }
    }

    /// The arguments it was made of.
    pub fn arguments(self) -> Vec<String> {
        match self.value {
            None => vec![self.name],
            Some(value) if self.apart => vec![self.name, value],
            Some(value) => vec![self.name + &value],
        }
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Main {
    /// A class of the class path, or a source file.
    Class(OsString),
    /// `-jar`.
    Jar(OsString),
    /// `-m`: a module, and perhaps its class.
    Module(OsString),
    /// Nothing: `java -version`.
    None,
}

/// A command line of `java`, argument files expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaLine {
    /// Options before the main class.
    pub options: Vec<JavaOption>,
    pub main: Main,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
}

impl JavaLine {
    /// Takes a command line apart. Nothing can go wrong: what makes no sense is passed on, for the launcher to say so.
    pub fn parse(arguments: Vec<OsString>) -> Self {
        let mut options = Vec::new();
        let mut rest = arguments.into_iter();
        let (mut jar, mut module) = (false, None);
        let mut main = Main::None;
        while let Some(argument) = rest.next() {
            let Some(text) = argument.to_str().filter(|text| text.starts_with('-')) else {
                main = if jar { Main::Jar(argument) } else { Main::Class(argument) };
                break;
            };
            match text {
                "-jar" => jar = true,
                "-m" | "--module" => {
                    module = rest.next();
                    break;
                }
                _ if text.starts_with("--module=") => {
                    module = Some(text["--module=".len()..].into());
                    break;
                }
                _ if takes_next(text) => {
                    let value = rest.next().map(|value| value.to_string_lossy().into_owned());
                    let apart = value.is_some();
                    options.push(JavaOption { name: text.into(), value, apart });
                }
                _ => options.push(JavaOption::parse(text)),
            }
        }
        if let Some(module) = module {
            main = Main::Module(module);
        } else if jar && main == Main::None {
            options.push(JavaOption::parse("-jar"));
        }
        Self { options, main, arguments: rest.collect() }
    }

    /// The options in a text such as that of `JDK_JAVA_OPTIONS`.
    pub fn options_of(words: Vec<String>) -> Vec<JavaOption> {
        Self::parse(words.into_iter().map(OsString::from).collect()).options
    }

    /// Converts it back to arguments.
    pub fn arguments(self) -> Vec<OsString> {
        // The launcher takes a leading @ for a file, up to the main class.
        let escaped = |word: String| if word.starts_with('@') && word.len() > 1 { format!("@{word}") } else { word };
        let options = self.options.into_iter().flat_map(JavaOption::arguments);
        let mut out: Vec<OsString> = options.map(|word| escaped(word).into()).collect();
        match self.main {
            Main::None => {}
            Main::Class(class) => out.push(class),
            Main::Jar(jar) => out.extend(["-jar".into(), jar]),
            Main::Module(module) => out.extend(["-m".into(), module]),
        }
        out.extend(self.arguments);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> JavaLine {
        JavaLine::parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn lines_are_taken_apart_and_put_together_again() {
        for line in [
            "Main",
            "-version",
            "-Xmx1g -cp a:b/* Main -cp mine",
            "-jar app.jar --flag",
            "-Dx=y -javaagent:agent.jar=a=b -jar app.jar",
            "--module-path=mods --add-modules ALL-SYSTEM -m app/app.Main x",
            "-Xbootclasspath/a:x.jar --patch-module m=a:b --class-path=c Main.java",
            "-cp",
            "-jar",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(parse(line).arguments(), words, "{line}");
        }
        assert_eq!(parse("--module=a/b x").arguments(), ["-m", "a/b", "x"]);
        // Options between -jar and its jar are the launcher's.
        assert_eq!(parse("-jar -Dx=y app.jar a").arguments(), ["-Dx=y", "-jar", "app.jar", "a"]);
    }

    #[test]
    fn parts_are_reported() {
        let line = parse("-ea -cp a --module-path=m -javaagent:x.jar=o -Det.traceFile=t Main -p no");
        let roles: Vec<Role> = line.options.iter().map(JavaOption::role).collect();
        assert_eq!(roles, [Role::Other, Role::ClassPath, Role::ModulePath, Role::Agent, Role::Runtime]);
        assert_eq!(line.options[3].value.as_deref(), Some("x.jar=o"));
        assert_eq!(line.main, Main::Class("Main".into()));
        assert_eq!(line.arguments, ["-p", "no"]);
        assert_eq!(parse("-p mods -m app x").main, Main::Module("app".into()));
        assert_eq!(parse("-version").main, Main::None);
    }

    #[test]
    fn an_argument_with_an_at_is_no_file() {
        let line = JavaLine::parse(vec!["-cp".into(), "@lib".into(), "Main".into(), "@x".into()]);
        assert_eq!(line.arguments(), ["-cp", "@@lib", "Main", "@x"]);
    }
}
