//! `--include` and `--exclude`: which classes get hooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use thiserror::Error;

/// Why a pattern is invalid. The caller puts the option before the message.
#[derive(Debug, Error)]
pub enum PatternError {
    /// The pattern is empty.
    #[error("'' is not a pattern: use one such as com.acme.** or *Test")]
    Empty,
    /// It is not a valid glob, for example because of unbalanced brackets.
    #[error("'{pattern}' is not a pattern: {why}")]
    Glob {
        /// The pattern as given; the glob made from it looks different.
        pattern: String,
        /// The reason.
        why: globset::ErrorKind,
    },
}

/// Rules in the order of the command line; the first one that matches a class decides.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    include: bool,
    pattern: String,
    glob: GlobMatcher,
    /// The pattern has no wildcards: it names a class or a whole package.
    literal: bool,
    /// Whether the rule has decided about a class.
    used: Arc<AtomicBool>,
}

impl Filter {
    /// Appends a rule. Patterns are in Java form:
    ///
    /// - `*` stands for any characters except a dot, `**` for any characters: `com.acme.**`, `com.acme.*Impl`;
    /// - a pattern without wildcards is a class, or a package with its subpackages: `java.util.HashMap`, `com.acme`;
    /// - a pattern without a dot is matched against the simple name: `*Test`.
    ///
    /// Nested classes are treated like their top-level class: `java.util.HashMap` also matches
    /// `java.util.HashMap$Node`.
    pub fn push(&mut self, include: bool, pattern: &str) -> Result<(), PatternError> {
        if pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        let literal = !pattern.contains(['*', '?', '[', '{']);
        let mut glob = pattern.replace('.', "/");
        if !pattern.contains('.') && !pattern.contains("**") {
            glob.insert_str(0, "**/");
        }
        let glob = GlobBuilder::new(&glob).literal_separator(true).backslash_escape(false).build();
        let glob =
            glob.map_err(|error| PatternError::Glob { pattern: pattern.to_owned(), why: error.kind().clone() })?;
        let glob = glob.compile_matcher();
        self.rules.push(Rule { include, pattern: pattern.to_owned(), glob, literal, used: Arc::default() });
        Ok(())
    }

    /// Whether a class (in internal form) gets hooks.
    pub fn hooks(&self, class: &str) -> bool {
        match self.rules.iter().find(|rule| rule.matches(class)) {
            Some(rule) => {
                rule.used.store(true, Ordering::Relaxed);
                rule.include
            }
            None => !self.rules.iter().any(|rule| rule.include),
        }
    }

    /// Whether there are no rules, so that every class gets hooks.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the same rules, none marked as having decided.
    pub fn fresh(&self) -> Self {
        let rules = self.rules.iter().map(|rule| Rule { used: Arc::default(), ..rule.clone() });
        Self { rules: rules.collect() }
    }

    /// Indexes of the rules that have decided about a class.
    pub fn decided(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().enumerate().filter(|(_, rule)| rule.used.load(Ordering::Relaxed)).map(|(number, _)| number)
    }

    /// Marks these rules as having decided, as recorded by an earlier run.
    pub fn note_decided(&self, numbers: impl IntoIterator<Item = usize>) {
        for rule in numbers.into_iter().filter_map(|number| self.rules.get(number)) {
            rule.used.store(true, Ordering::Relaxed);
        }
    }

    /// The lines of [`unused`](Self::unused) for including rules only: if more classes may appear later, an excluding
    /// rule may still take effect.
    pub fn unused_includes(&self) -> impl Iterator<Item = String> {
        self.lines(|rule| rule.include && !rule.is_of_jdk())
    }

    /// A warning for each rule about JDK classes, for use where only an application is instrumented.
    pub fn of_jdk(&self) -> impl Iterator<Item = String> {
        self.rules.iter().filter(|rule| rule.is_of_jdk()).map(|rule| {
            format!(
                "{} {} has no effect on the JDK: it applies to the program, and the JDK is always hooked as a whole. To choose among its \
                 classes, make a copy with et-instrument jdk {0} … and run on that",
                option(rule.include),
                rule.pattern
            )
        })
    }

    /// A warning for each rule that has decided about no class: it is probably misspelt.
    pub fn unused(&self) -> impl Iterator<Item = String> {
        self.lines(|_| true)
    }

    fn lines(&self, of: impl Fn(&Rule) -> bool) -> impl Iterator<Item = String> {
        let unused = self.rules.iter().filter(move |rule| of(rule) && !rule.used.load(Ordering::Relaxed));
        unused.map(|rule| {
            let option = option(rule.include);
            format!("{option} {} had no effect: no class matches it, or an earlier pattern does", rule.pattern)
        })
    }

    /// The patterns of `--exclude` before any `--include` that may match classes created at run time.
    pub fn excluded(&self) -> Vec<&str> {
        let before = self.rules.iter().take_while(|rule| !rule.include);
        before.filter(|rule| !rule.is_of_jdk()).map(|rule| rule.pattern.as_str()).collect()
    }

    /// The rules as command line options.
    pub fn options(&self) -> impl Iterator<Item = String> {
        self.rules.iter().map(|rule| format!("{} {}", option(rule.include), rule.pattern))
    }

    /// The rules in text form for the content hash: `+com.acme.** -*Test`.
    pub fn describe(&self) -> String {
        let rules = self.rules.iter().map(|rule| format!("{}{}", if rule.include { '+' } else { '-' }, rule.pattern));
        rules.collect::<Vec<_>>().join(" ")
    }
}

/// Name of the option that adds such a rule.
pub fn option(include: bool) -> &'static str {
    if include { "--include" } else { "--exclude" }
}

impl Rule {
    /// Whether the pattern names a package that only a JDK has classes in.
    fn is_of_jdk(&self) -> bool {
        ["java.", "jdk.", "sun."].iter().any(|package| self.pattern.starts_with(package))
    }

    fn matches(&self, class: &str) -> bool {
        let enclosing = class.match_indices('$').map(|(at, _)| &class[..at]);
        if std::iter::once(class).chain(enclosing).any(|name| self.glob.is_match(name)) {
            return true;
        }
        self.literal
            && class.match_indices('/').any(|(at, _)| {
                let package = &class[..at];
                package.len() == self.pattern.len()
                    && package.bytes().zip(self.pattern.bytes()).all(|(a, b)| a == b || (a == b'/' && b == b'.'))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(rules: &[&str]) -> Filter {
        let mut filter = Filter::default();
        for rule in rules {
            filter.push(rule.starts_with('+'), &rule[1..]).unwrap();
        }
        filter
    }

    #[test]
    fn no_rules_hook_everything() {
        assert!(Filter::default().hooks("a/B"));
    }

    #[test]
    fn double_star_crosses_packages_and_single_does_not() {
        let deep = filter(&["+com.acme.**"]);
        assert!(deep.hooks("com/acme/A") && deep.hooks("com/acme/x/y/A"));
        assert!(!deep.hooks("com/acmes/A") && !deep.hooks("org/A"));
        let flat = filter(&["+com.acme.*"]);
        assert!(flat.hooks("com/acme/A") && !flat.hooks("com/acme/x/A"));
    }

    #[test]
    fn a_name_without_wildcards_is_a_class_or_a_package() {
        let class = filter(&["-java.util.HashMap"]);
        assert!(!class.hooks("java/util/HashMap") && !class.hooks("java/util/HashMap$Node"));
        assert!(class.hooks("java/util/HashMapper") && class.hooks("java/util/HashSet"));
        let package = filter(&["-com.acme"]);
        assert!(!package.hooks("com/acme/A") && !package.hooks("com/acme/x/A") && package.hooks("com/acmeA"));
    }

    #[test]
    fn without_a_dot_it_is_the_simple_name() {
        let tests = filter(&["-*Test"]);
        assert!(!tests.hooks("a/b/FooTest") && !tests.hooks("FooTest") && !tests.hooks("a/FooTest$1"));
        assert!(tests.hooks("a/TestFoo"));
    }

    #[test]
    fn first_match_wins() {
        let both = filter(&["-com.acme.gen.**", "+com.acme.**"]);
        assert!(!both.hooks("com/acme/gen/A") && both.hooks("com/acme/A") && !both.hooks("org/A"));
        let other = filter(&["+com.acme.**", "-com.acme.gen.**"]);
        assert!(other.hooks("com/acme/gen/A"));
    }

    #[test]
    fn rules_that_decide_nothing_are_reported() {
        let rules = filter(&["-com.acme.gen.**", "+com.acme.**", "-com.acme.*Test", "-org"]);
        assert_eq!(rules.unused().count(), 4);
        assert!(!rules.hooks("com/acme/gen/A") && rules.hooks("com/acme/ATest"));
        let unused: Vec<String> = rules.unused().collect();
        assert!(unused.len() == 2 && unused[0].starts_with("--exclude com.acme.*Test "), "{unused:?}");
        assert_eq!(rules.unused_includes().count(), 0);

        let again = rules.fresh();
        assert_eq!((again.decided().count(), again.unused_includes().count()), (0, 1));
        again.note_decided(rules.decided());
        assert_eq!(again.decided().collect::<Vec<_>>(), [0, 1]);
        assert!(again.unused().eq(rules.unused()));
    }

    #[test]
    fn rules_about_the_jdk_are_reported() {
        let rules = filter(&["-java.**", "+java.util.HashMap", "-com.acme.**", "+javax.servlet.**"]);
        let told: Vec<String> = rules.of_jdk().collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].starts_with("--exclude java.** has no effect on the JDK") && told[1].starts_with("--include "));
        assert_eq!(rules.unused_includes().count(), 1);
        // Classes that the JDK creates at run time keep their hooks like all others.
        assert!(rules.excluded().is_empty());
        assert_eq!(filter(&["-java.**", "-com.acme.**"]).excluded(), ["com.acme.**"]);
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        let message = Filter::default().push(true, "a.b[").unwrap_err().to_string();
        assert!(message.starts_with("'a.b[' is not a pattern: unclosed"), "{message}");
        assert!(matches!(Filter::default().push(true, ""), Err(PatternError::Empty)));
    }
}
