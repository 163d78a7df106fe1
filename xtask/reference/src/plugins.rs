//! The options of the build plugins, from their sources.
//!
//! The sources are read as text, since Gradle cannot be asked, and Maven's plugin lists its options only where Maven is
//! available to build it. This looks for Javadoc comments and the declarations after them, in the form that the sources
//! have.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::markdown;

const GRADLE: &str = "gradle-plugin/src/main/java/org/elephanttracks/gradle";
const MAVEN: &str = "maven-plugin/src/main/java/org/elephanttracks/maven";

/// Section of the Gradle plugin.
pub(crate) fn gradle(repo: &Path) -> Result<String> {
    let tables = [("ElephantTracksExtension", "elephantTracks"), ("EtRun", "etRun")].map(|(class, block)| {
        let getters: Vec<Vec<String>> = members(&read(&repo.join(GRADLE).join(format!("{class}.java")))?)
            .iter()
            .filter_map(|member| Some((property_of_getter(&member.declaration)?, &member.doc)))
            .map(|(name, doc)| vec![format!("`{name}`"), doc.clone()])
            .collect();
        ensure!(!getters.is_empty(), "{class} has no properties");
        check(class, &getters)?;
        Ok(format!("In `{block} {{ … }}`:\n\n{}", markdown::table(&["property", "meaning"], getters)))
    });
    let [extension, run] = tables;
    Ok(format!(
        "## Gradle\n\n[gradle.md](gradle.md) explains how to use them.\n\n{}\n\
         All but `includes` and `excludes` can also be set with `-PelephantTracks.NAME=VALUE`.\n\n{}",
        extension?, run?
    ))
}

/// Section of the Maven plugin.
pub(crate) fn maven(repo: &Path) -> Result<String> {
    let folder = repo.join(MAVEN);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut text = String::from("## Maven\n\n[maven.md](maven.md) explains how to use them.\n");
    for file in files {
        let source = read(&file)?;
        let members = members(&source);
        let parameters: Vec<Vec<String>> = members.iter().filter_map(Member::parameter).collect();
        let class = members.iter().find(|member| member.declaration.contains("class "));
        let goal = class.and_then(|class| quoted(&class.annotations, "name"));
        check(&file.display().to_string(), &parameters)?;
        match (goal, class) {
            (Some(goal), Some(class)) => text += &format!("\n`et:{goal}`: {}\n", class.doc),
            _ if parameters.is_empty() => continue,
            _ => text += "\nAll goals have these parameters:\n",
        }
        if !parameters.is_empty() {
            text += "\n";
            text += &markdown::table(&["parameter", "meaning", "on the command line", "default"], parameters);
        }
    }
    Ok(text)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Fails if an option has no documentation.
fn check(place: &str, rows: &[Vec<String>]) -> Result<()> {
    for row in rows {
        ensure!(!row[1].is_empty(), "{place}: {} has no comment for Javadoc", row[0]);
    }
    Ok(())
}

/// A class, field or method with its comment and annotations.
#[derive(Debug, Default)]
struct Member {
    /// The comment, in Markdown.
    doc: String,
    annotations: String,
    /// First line of the declaration.
    declaration: String,
}

impl Member {
    /// A row of the table if it is a parameter for users.
    fn parameter(&self) -> Option<Vec<String>> {
        if !self.annotations.contains("@Parameter") || self.annotations.contains("readonly") {
            return None;
        }
        let declared = self.declaration.split(['=', ';']).next()?.trim();
        let name = declared.rsplit(' ').next()?;
        let code = |text: Option<&str>, prefix| text.map(|text| format!("`{prefix}{text}`")).unwrap_or_default();
        Some(vec![
            format!("`{name}`"),
            self.doc.clone(),
            code(quoted(&self.annotations, "property"), "-D"),
            code(quoted(&self.annotations, "defaultValue"), ""),
        ])
    }
}

/// Members with annotations, or declared for use by others.
fn members(source: &str) -> Vec<Member> {
    let mut members = Vec::new();
    let mut next = Member::default();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with("/**") {
            let mut comment = line.to_owned();
            while !comment.ends_with("*/") {
                let Some(more) = lines.next() else { break };
                comment = format!("{comment} {}", more.strip_prefix("* ").unwrap_or(more));
            }
            next = Member { doc: doc(&comment), ..Member::default() };
        } else if line.starts_with('@') {
            next.annotations += line;
            while next.annotations.matches('(').count() > next.annotations.matches(')').count() {
                let Some(more) = lines.next() else { break };
                next.annotations += more;
            }
        } else {
            let member = Member { declaration: line.to_owned(), ..std::mem::take(&mut next) };
            if line.starts_with("public ") || !member.annotations.is_empty() {
                members.push(member);
            }
        }
    }
    members
}

fn doc(comment: &str) -> String {
    let text = comment.trim_start_matches("/**").trim_end_matches("*/").trim();
    // The only Javadoc tag in use there.
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once("{@code ") {
        let (code, after) = code.split_once('}').unwrap_or((code, ""));
        written += &format!("{before}`{code}`");
        rest = after;
    }
    written + rest
}

/// `key = "value"` in an annotation.
fn quoted<'a>(annotations: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = annotations.split_once(&format!("{key} = \""))?;
    value.split('"').next()
}

fn property_of_getter(declaration: &str) -> Option<String> {
    let (signature, _) = declaration.strip_prefix("public ")?.split_once("()")?;
    let (_, name) = signature.rsplit_once(' ')?;
    let name = name.strip_prefix("get").or_else(|| name.strip_prefix("is"))?;
    let first = name.chars().next().filter(char::is_ascii_uppercase)?;
    Some(format!("{}{}", first.to_ascii_lowercase(), &name[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOJO: &str = "
/**
 * Runs {@code it},
 * traced.
 */
@Mojo(
    name = \"run\", threadSafe = true
)
public class RunMojo extends AbstractEtMojo {
    @Parameter(defaultValue = \"${project}\", readonly = true)
    MavenProject project;

    /** Which classes. */
    @Parameter(property = \"et.includes\", defaultValue = \"all\")
    private List<String> includes = new ArrayList<>();

    /** No parameter. */
    private int count;

    @Override
    public boolean isSkipped() {
";

    #[test]
    fn parameters_are_found_with_what_is_said_of_them() {
        let members = members(MOJO);
        assert_eq!(members[0].doc, "Runs `it`, traced.");
        assert_eq!(quoted(&members[0].annotations, "name"), Some("run"));
        let rows: Vec<_> = members.iter().filter_map(Member::parameter).collect();
        assert_eq!(rows, [["`includes`", "Which classes.", "`-Det.includes`", "`all`"].map(str::to_owned)]);
    }

    #[test]
    fn getters_are_properties() {
        let names: Vec<_> = members(MOJO).iter().filter_map(|member| property_of_getter(&member.declaration)).collect();
        assert_eq!(names, ["skipped"]);
        assert_eq!(property_of_getter("public void getaway() {"), None);
    }

    #[test]
    fn an_unexplained_option_is_an_error() {
        let error = check("X.java", &[vec!["`x`".into(), String::new()]]).unwrap_err().to_string();
        assert_eq!(error, "X.java: `x` has no comment for Javadoc");
    }
}
