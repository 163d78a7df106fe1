//! Jars that name other things than they did.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::cache::CacheError;
use crate::container::manifest;
use crate::container::zip::{Archive, Packed, Writer};
use crate::files::replace;
use crate::input::Input;
use crate::memory;

/// Gives the manifest of a jar, which has it, another value for an attribute.
pub(super) fn relink(jar: &Path, attribute: &str, value: &str) -> Result<(), CacheError> {
    let bytes = Input::open(jar)?;
    let fail = |source| CacheError::Zip { path: jar.to_owned(), source };
    let archive = Archive::read(&bytes).map_err(fail)?;
    replace(jar, |part| {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part)?;
        file.set_permissions(std::fs::metadata(jar)?.permissions())?;
        let mut writer = Writer::like(BufWriter::new(file), &archive, &bytes)?;
        for entry in &archive.entries {
            let content = manifest::is_manifest(&entry.name)
                .then(|| entry.content_within(&bytes, memory::MANIFEST).ok())
                .flatten();
            match content {
                Some(content) => {
                    let changed = manifest::with_main_attribute(&content, attribute, value);
                    writer.replace(entry, &bytes, &Packed::new(changed, entry.method))?;
                }
                None => writer.copy(entry, &bytes)?,
            }
        }
        let (mut out, _) = writer.finish(&bytes[archive.comment.clone()])?;
        out.flush()
    })?;
    Ok(())
}

/// A path as the URL of a file.
pub(super) fn file_url(path: &Path, is_folder: bool) -> String {
    let mut url = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' | b'=' | b'@' => {
                url.push(char::from(*byte));
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    if is_folder && !url.ends_with('/') {
        url.push('/');
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_urls() {
        assert_eq!(file_url(Path::new("/a b/ü%.jar"), false), "file:/a%20b/%C3%BC%25.jar");
        assert_eq!(file_url(Path::new("/a/conf"), true), "file:/a/conf/");
    }
}
