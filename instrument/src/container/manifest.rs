//! Signed jars: signature files, and digests in the manifest.

/// Whether the entry signs the jar (JAR specification, "Signed JAR File"). Names are matched without case.
pub fn is_signature(entry: &str) -> bool {
    let upper = entry.to_ascii_uppercase();
    let Some(name) = upper.strip_prefix("META-INF/") else { return false };
    !name.contains('/')
        && ([".SF", ".RSA", ".DSA", ".EC"].iter().any(|end| name.ends_with(end)) || name.starts_with("SIG-"))
}

/// Whether the entry is the manifest.
pub fn is_manifest(entry: &str) -> bool {
    entry.eq_ignore_ascii_case("META-INF/MANIFEST.MF")
}

/// An attribute of the main section, without the breaks of its lines. Names are matched without case.
pub fn main_attribute(manifest: &[u8], wanted: &str) -> Option<String> {
    let main = sections(manifest).into_iter().next()?;
    let lines = attributes_of(&main).into_iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted.as_bytes()))?.0;
    let mut value = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // After the name and colon, or after the space of a continuation line.
        value.extend_from_slice(line.get(if index == 0 { wanted.len() + 1 } else { 1 }..).unwrap_or_default());
    }
    Some(String::from_utf8_lossy(&value).trim().to_owned())
}

/// Returns the manifest with a new value for an attribute in the main section, which must exist. Lines have the maximum
/// length of 72 bytes.
pub fn with_main_attribute(manifest: &[u8], wanted: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(manifest.len() + value.len());
    for (index, section) in sections(manifest).into_iter().enumerate() {
        for (attribute, name) in attributes_of(&section) {
            if index > 0 || !name.eq_ignore_ascii_case(wanted.as_bytes()) {
                attribute.iter().for_each(|line| out.extend_from_slice(line));
                continue;
            }
            let line = format!("{wanted}: {value}");
            // A continuation's leading space counts.
            let (first, rest) = line.as_bytes().split_at(line.len().min(72));
            out.extend_from_slice(first);
            for more in rest.chunks(71) {
                out.extend_from_slice(b"\r\n ");
                out.extend_from_slice(more);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
    out
}

/// The manifest without digests: they are of the original classes. The main section is kept as it is, byte for
/// byte; a section that held nothing but digests goes. `None` if there are no digests.
pub fn without_digests(manifest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(manifest.len());
    let mut changed = false;
    for (index, section) in sections(manifest).into_iter().enumerate() {
        if index == 0 {
            section.iter().for_each(|line| out.extend_from_slice(line));
            continue;
        }
        let (mut kept, mut removed, mut others) = (Vec::new(), false, false);
        for (attribute, name) in attributes_of(&section) {
            if is_digest(name) {
                removed = true;
                continue;
            }
            others |= !name.is_empty() && !name.eq_ignore_ascii_case(b"Name");
            kept.extend(attribute);
        }
        changed |= removed;
        if others || !removed {
            kept.iter().for_each(|line| out.extend_from_slice(line));
        }
    }
    changed.then_some(out)
}

fn is_digest(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with(b"-DIGEST") || name.windows(8).any(|part| part == b"-DIGEST-") || name == b"MAGIC"
}

/// Lines with their ends; `\r\n`, `\n` and `\r` all end one.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

/// Sections with the blank lines that end them.
fn sections(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut out: Vec<Vec<&[u8]>> = vec![Vec::new()];
    let mut ended = false;
    for line in lines(text) {
        if ended && !is_blank(line) {
            out.push(Vec::new());
        }
        ended = is_blank(line);
        if let Some(section) = out.last_mut() {
            section.push(line);
        }
    }
    out
}

/// Attributes with their continuation lines, and their names; blank lines have none.
fn attributes_of<'a>(section: &[&'a [u8]]) -> Vec<(Vec<&'a [u8]>, &'a [u8])> {
    let mut out: Vec<(Vec<&[u8]>, &[u8])> = Vec::new();
    for line in section {
        match out.last_mut() {
            Some(last) if line.starts_with(b" ") => last.0.push(line),
            _ => {
                let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
                out.push((vec![line], &line[..colon]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_files_are_distinguished_from_others() {
        for name in ["META-INF/A.SF", "META-INF/a.rsa", "meta-inf/B.EC", "META-INF/SIG-X"] {
            assert!(is_signature(name), "{name}");
        }
        for name in ["META-INF/x/A.SF", "A.RSA", "META-INF/MANIFEST.MF", "META-INF/services/a.SFX"] {
            assert!(!is_signature(name), "{name}");
        }
    }

    #[test]
    fn digests_go_and_all_else_stays() {
        let manifest = "Manifest-Version: 1.0\r\nMain-Class: a.B\r\nX-Digest: main section stays\r\n\r\n\
            Name: a/B.class\r\nSHA-256-Digest: abc\r\n def\r\n\r\n\
            Name: a/\r\nSealed: true\r\nSHA1-Digest: xyz\r\n\r\n\
            Name: c/\r\n\r\n";
        let expected = "Manifest-Version: 1.0\r\nMain-Class: a.B\r\nX-Digest: main section stays\r\n\r\n\
            Name: a/\r\nSealed: true\r\n\r\n\
            Name: c/\r\n\r\n";
        let out = without_digests(manifest.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(without_digests(expected.as_bytes()), None);
    }

    #[test]
    fn attributes_of_the_main_section_are_read() {
        let manifest = b"Manifest-Version: 1.0\r\nclass-path: lib/a.jar lib\r\n /b.jar\r\n\r\nName: x\r\nOther: y\r\n";
        assert_eq!(main_attribute(manifest, "Class-Path").as_deref(), Some("lib/a.jar lib/b.jar"));
        assert_eq!(main_attribute(manifest, "Other"), None);
        assert_eq!(main_attribute(b"Class-Path", "Class-Path"), None);
        assert_eq!(main_attribute(b"", "Class-Path"), None);
    }

    #[test]
    fn an_attribute_gets_another_value() {
        let manifest =
            b"Manifest-Version: 1.0\nclass-path: lib/a.jar lib\n /b.jar\nMain-Class: M\n\nName: x\nClass-Path: y\n";
        let long = "file:/a/".repeat(30);
        let out = with_main_attribute(manifest, "Class-Path", &long);
        assert_eq!(main_attribute(&out, "Class-Path").unwrap(), long);
        assert_eq!(main_attribute(&out, "Main-Class").unwrap(), "M");
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.len() <= 72) && text.ends_with("\n\nName: x\nClass-Path: y\n"), "{text}");
    }

    #[test]
    fn any_bytes_will_do() {
        assert_eq!(without_digests(b""), None);
        assert_eq!(without_digests(b"\n\n : \n\r\xff"), None);
        assert_eq!(without_digests(b"A: b\n\nName: x\nMD5-Digest: y"), Some(b"A: b\n\n".to_vec()));
    }
}
