//! Whose code methods are: the program's, a library's or the JDK's.

use et_names::{ArtifactKind, MethodId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::source::Source;
use crate::trace::Trace;

/// Origin of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// What was started: the jar with the main class, class folders, wars.
    Program,
    /// Other jars.
    Library,
    /// The JDK, the classes that it makes at run time, and the JVM itself.
    Jdk,
}

/// Number of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackageId(u32);

impl PackageId {
    /// Of what no code is known of: the JVM did it.
    pub const JVM: PackageId = PackageId(0);
}

/// A package with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Package {
    pub origin: Origin,
    /// Display name: `java.util`.
    pub name: String,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    package: PackageId,
    origin: Origin,
}

/// What was started, as far as the trace shows it.
#[derive(Debug, Default)]
struct Main {
    /// Internal name of the main class.
    class: Option<String>,
    /// The artifact that was started, by its name.
    artifact: Option<String>,
}

/// The owners of methods, and their packages.
#[derive(Debug)]
pub struct Owners<'a> {
    source: &'a Source,
    main: Main,
    /// Packages of the artifacts that were instrumented before the run, by internal names.
    packages: FxHashMap<&'a str, Origin>,
    methods: FxHashMap<MethodId, Known>,
    numbers: FxHashMap<Package, PackageId>,
    all: Vec<Package>,
}

impl<'a> Owners<'a> {
    /// Finds out what was started.
    pub fn of(source: &'a Source) -> Self {
        let jvm = Package { origin: Origin::Jdk, name: "the JVM itself".into() };
        let mut owners = Self {
            source,
            main: Main::default(),
            packages: FxHashMap::default(),
            methods: FxHashMap::default(),
            numbers: FxHashMap::from_iter([(jvm.clone(), PackageId::JVM)]),
            all: vec![jvm],
        };
        if let Source::Trace(trace) = source {
            owners.main = main_of(trace);
            for table in trace.names.tables().filter(|table| !table.artifact.kind.is_made_at_run_time()) {
                let is_jdk = table.artifact.kind == ArtifactKind::Jdk;
                for class in &table.classes {
                    let name = table.str(class.name);
                    let origin = match is_jdk {
                        true => owners.main.of_jdk(name),
                        false => owners.main.of_artifact(&table.artifact.name, name),
                    };
                    // Of a package that is in several the first counts, the program before its libraries.
                    let entry = owners.packages.entry(package(name)).or_insert(origin);
                    *entry = (*entry).min(origin);
                }
            }
        }
        owners
    }

    /// Whether the names of methods are known at all. A text without a names file has none.
    pub fn is_known(&self) -> bool {
        self.source.naming().is_known()
    }

    #[inline]
    fn known(&mut self, method: MethodId) -> Known {
        if let Some(&known) = self.methods.get(&method) {
            return known;
        }
        let known = self.look_up(method);
        self.methods.insert(method, known);
        known
    }

    #[cold]
    fn look_up(&mut self, method: MethodId) -> Known {
        let Some(class) = self.source.naming().class_of_method(method) else {
            // Without a names table it does not belong to the JDK, which always has one.
            return Known { package: self.number(Origin::Library, "?"), origin: Origin::Library };
        };
        if class.contains("$$Lambda") {
            // The class that the JDK generates for a lambda only calls its body, which belongs to the code that
            // contains it.
            return Known { package: self.number(Origin::Jdk, "java/lang/invoke"), origin: Origin::Jdk };
        }
        let origin = self.origin_of_class(&class);
        Known { package: self.number(origin, package(&class)), origin }
    }

    /// Origin of a class, by its internal name.
    pub fn origin_of_class(&self, class: &str) -> Origin {
        self.packages.get(package(class)).copied().unwrap_or_else(|| self.main.of_name(class))
    }

    /// Origin of a class, by its descriptor; of an array that of its elements.
    pub fn origin_of_descriptor(&self, descriptor: &str) -> Origin {
        let element = descriptor.trim_start_matches('[');
        let class = element.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
        class.map_or(Origin::Jdk, |class| self.origin_of_class(class))
    }

    fn number(&mut self, origin: Origin, internal_name: &str) -> PackageId {
        let name = if internal_name.is_empty() { "(no package)".into() } else { internal_name.replace('/', ".") };
        let package = Package { origin, name };
        let all = &mut self.all;
        *self.numbers.entry(package).or_insert_with_key(|package| {
            all.push(package.clone());
            PackageId(all.len() as u32 - 1)
        })
    }

    /// Origin of a method.
    pub fn origin(&mut self, method: MethodId) -> Origin {
        self.known(method).origin
    }

    /// Origin of the package that a method's class is in. The class generated for a lambda is in the package of the
    /// code that contains it.
    pub fn place(&mut self, method: MethodId) -> Origin {
        let class = self.source.naming().class_of_method(method);
        match class.as_deref().and_then(|class| class.split_once("$$Lambda")) {
            Some((class, _)) => {
                let known = self.packages.get(package(class)).copied();
                known.unwrap_or_else(|| self.main.of_name(class))
            }
            None => self.origin(method),
        }
    }

    /// The package of a method.
    pub fn package_of(&mut self, method: MethodId) -> PackageId {
        self.known(method).package
    }

    /// What a number of a package stands for.
    pub fn package(&self, id: PackageId) -> &Package {
        &self.all[id.0 as usize]
    }
}

/// `java/util` of `java/util/Map`.
fn package(class: &str) -> &str {
    class.rsplit_once('/').map_or("", |(package, _)| package)
}

fn main_of(trace: &Trace) -> Main {
    let loaded = |class: &str| {
        let ty = trace.types.get_class(class)?;
        let mut tables = trace.names.classes_of(ty).iter().map(|&class| trace.names.class(class).0);
        let table = tables.find(|table| table.artifact.kind == ArtifactKind::Application);
        Some(table.map(|table| table.artifact.name.clone()))
    };
    started(&trace.file.meta().command, loaded, |name| trace.names.tables().any(|table| table.artifact.name == name))
}

/// The classes that compile and run a source file: `java Leak.java`.
const SOURCE_LAUNCHER: &str = "com/sun/tools/javac/launcher/";

/// Interprets `sun.java.command`. `loaded` returns whether the program has a class and in which artifact, `is_artifact`
/// whether there is an artifact with that name.
fn started(command: &str, loaded: impl Fn(&str) -> Option<Option<String>>, is_artifact: impl Fn(&str) -> bool) -> Main {
    let Some(word) = command.split(' ').next().filter(|word| !word.is_empty()) else { return Main::default() };
    // `module/class` is the JVM's notation for a main class in a module.
    let class = word.rsplit('/').next().unwrap_or(word).replace('.', "/");
    if class.starts_with(SOURCE_LAUNCHER) {
        // The program was compiled in memory and is in no artifact.
        return Main { class: None, artifact: Some("(compiled in memory)".into()) };
    }
    let of_class = loaded(&class);
    // `Main data.jar` is a class and an argument; for `-jar`, the first word is not a class, even if the path contains
    // spaces.
    if of_class.is_none() {
        let jar = command.find(".jar").map(|at| at + ".jar".len());
        if let Some(end) = jar.filter(|&end| command[end..].is_empty() || command[end..].starts_with(' ')) {
            let path = &command[..end];
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            // The first word may be a class, and the jar is unknown: then the class was not instrumented.
            let may_be_class = word.len() < end && !word.contains('/');
            if !may_be_class || is_artifact(&name) {
                return Main { artifact: Some(name), class: None };
            }
        }
    }
    Main { class: Some(class), artifact: of_class.flatten() }
}

impl Main {
    /// Origin of a class in an artifact other than the JDK.
    fn of_artifact(&self, name: &str, class: &str) -> Origin {
        let is_jar = name.ends_with(".jar") || name.ends_with(".zip");
        let is_main = self.artifact.as_deref() == Some(name);
        // The main class may be in no artifact if a launcher contains it.
        let may_be_main = self.artifact.is_none() && (self.class.is_none() || self.is_beside(class));
        if is_main || !is_jar || may_be_main { Origin::Program } else { Origin::Library }
    }

    /// Of a class of the JDK's: `javac` is a program, too.
    fn of_jdk(&self, class: &str) -> Origin {
        let is_programs = self.artifact.is_none() && self.class.is_some() && self.is_beside(class);
        if is_programs { Origin::Program } else { Origin::Jdk }
    }

    /// Of a class that no artifact has the package of.
    fn of_name(&self, class: &str) -> Origin {
        const JDK: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];
        if JDK.iter().any(|prefix| class.starts_with(prefix)) {
            return self.of_jdk(class);
        }
        // Where only the jar is known, what is in no artifact may well be of it.
        if self.class.is_none() || self.is_beside(class) { Origin::Program } else { Origin::Library }
    }

    /// Whether a class is in the main class's package or below it.
    fn is_beside(&self, class: &str) -> bool {
        let Some(main) = self.class.as_deref() else { return false };
        match package(main) {
            "" => !class.contains('/'),
            near => package(class) == near || class.strip_prefix(near).is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_what_was_started() {
        let loaded = |class: &str| match class {
            "shop/Main" => Some(Some("shop.jar".to_owned())),
            "Main" => Some(None),
            _ => None,
        };
        let of = |command: &str| {
            let Main { class, artifact } = started(command, loaded, |name| name == "my app.jar");
            (class, artifact)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("app.jar x.jar"), (None, some("app.jar")));
        assert_eq!(of("/opt/my shop/app.jar -v"), (None, some("app.jar")));
        assert_eq!(of("my app.jar -v"), (None, some("my app.jar")));
        assert_eq!(of("Gone data.jar"), (some("Gone"), None));
        assert_eq!(of("shop.Main stock"), (some("shop/Main"), some("shop.jar")));
        assert_eq!(of("shop.Main stock.jar"), (some("shop/Main"), some("shop.jar")));
        assert_eq!(of("module/shop.Main"), (some("shop/Main"), some("shop.jar")));
        assert_eq!(of("Main"), (some("Main"), None));
        assert_eq!(of(""), (None, None));
    }

    #[test]
    fn of_a_source_file_the_program_is_what_was_compiled() {
        for command in [
            "jdk.compiler/com.sun.tools.javac.launcher.Main Leak.java x.jar",
            "com.sun.tools.javac.launcher.SourceLauncher Leak.java",
        ] {
            let main = started(command, |_| Some(None), |_| false);
            assert_eq!(main.of_name("Leak$Node"), Origin::Program);
            assert_eq!(main.of_jdk("com/sun/tools/javac/launcher/Main"), Origin::Jdk);
            assert_eq!(main.of_jdk("com/sun/tools/javac/tree/JCTree"), Origin::Jdk);
            assert_eq!(main.of_artifact("h2.jar", "org/h2/Driver"), Origin::Library);
        }
    }

    #[test]
    fn what_was_started_tells_programs_from_libraries() {
        let of_class = |class: &str, artifact: Option<&str>| Main {
            class: Some(class.into()),
            artifact: artifact.map(str::to_owned),
        };
        let app = of_class("shop/Main", Some("app.jar"));
        assert_eq!(app.of_artifact("app.jar", "shop/Main"), Origin::Program);
        assert_eq!(app.of_artifact("classes", "shop/Main"), Origin::Program);
        assert_eq!(app.of_artifact("h2.jar", "org/h2/Driver"), Origin::Library);
        assert_eq!(app.of_name("jdk/proxy1/$Proxy2"), Origin::Jdk);
        assert_eq!(app.of_name("shop/web/Page"), Origin::Program);
        assert_eq!(app.of_name("shopping/Page"), Origin::Library);
        let launched = of_class("shop/Main", None);
        assert_eq!(launched.of_artifact("shop.jar", "shop/Page"), Origin::Program);
        assert_eq!(launched.of_artifact("h2.jar", "org/h2/Driver"), Origin::Library);
        let javac = of_class("com/sun/tools/javac/Main", None);
        assert_eq!(javac.of_jdk("com/sun/tools/javac/tree/JCTree"), Origin::Program);
        assert_eq!(javac.of_jdk("java/lang/String"), Origin::Jdk);
        assert_eq!(Main::default().of_artifact("any.jar", "a/A"), Origin::Program);
        assert_eq!(of_class("Main", None).of_name("Main$1"), Origin::Program);
        assert_eq!(of_class("Main", None).of_name("org/h2/Driver"), Origin::Library);
    }
}
