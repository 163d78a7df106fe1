//! Prepares the HeapProxy classes for a JDK.
//!
//! Marks their methods as hidden, so that stack traces have no frames of hooks; doing it by hand in the sources would
//! be error-prone.

use et_rewriter::classfile::{Attribute, ClassFile, Malformed, Member, PoolBuilder, PoolFull, write_attribute};

/// The annotations that hide frames: up to 13, and from 14 on. The JVM passes over the one that it does not know.
const HIDDEN: [&[u8]; 2] = [b"Ljava/lang/invoke/LambdaForm$Hidden;", b"Ljdk/internal/vm/annotation/Hidden;"];
const ANNOTATIONS: &[u8] = b"RuntimeVisibleAnnotations";

/// One class with hidden methods.
pub fn adapt(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    let class = ClassFile::read(bytes)?;
    write(&class, bytes).map_err(|error| Malformed::somewhere(error.to_string()))
}

fn write(class: &ClassFile<'_>, bytes: &[u8]) -> Result<Vec<u8>, PoolFull> {
    let mut pool = PoolBuilder::new(&class.pool);
    let mut hidden = Vec::new();
    for annotation in HIDDEN {
        hidden.extend_from_slice(&pool.utf8(annotation)?.to_be_bytes());
        // No element-value pairs.
        hidden.extend_from_slice(&[0, 0]);
    }
    let annotations = pool.utf8(ANNOTATIONS)?;

    let mut members = (class.fields.len() as u16).to_be_bytes().to_vec();
    class.fields.iter().for_each(|field| members.extend_from_slice(field.bytes));
    members.extend_from_slice(&(class.methods.len() as u16).to_be_bytes());
    for method in &class.methods {
        with_annotations(method, annotations, &hidden, &mut members);
    }
    let mut attributes = (class.attributes.len() as u16).to_be_bytes().to_vec();
    class.attributes.iter().for_each(|attribute| attribute.write(&mut attributes));

    // Magic number and version.
    let mut out = bytes[..8].to_vec();
    pool.write(&class.pool, &mut out);
    out.extend_from_slice(class.header_bytes);
    out.extend_from_slice(&members);
    out.extend_from_slice(&attributes);
    Ok(out)
}

/// Appends the member with these annotations before those that it has: a member may have one such attribute only.
fn with_annotations(member: &Member<'_>, name: u16, hidden: &[u8], out: &mut Vec<u8>) {
    let (own, others): (Vec<&Attribute<'_>>, Vec<&Attribute<'_>>) =
        member.attributes.iter().partition(|attribute| attribute.name == ANNOTATIONS);
    // How many there are, and then the annotations.
    let own = own.first().and_then(|own| own.info.split_first_chunk::<2>());
    let (&count, annotations) = own.unwrap_or((&[0, 0], &[]));
    let count = u16::from_be_bytes(count) + HIDDEN.len() as u16;
    // Access, name, descriptor; javac writes few attributes.
    out.extend_from_slice(&member.bytes[..6]);
    out.extend_from_slice(&(others.len() as u16 + 1).to_be_bytes());
    others.iter().for_each(|attribute| attribute.write(out));
    write_attribute(out, name, &[&count.to_be_bytes(), hidden, annotations].concat());
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_rewriter::classfile::to_string;

    /// A class with a method, as javac would write it, with this attribute if there is one.
    fn proxy(annotations: Option<&[u8]>) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52, 0, 9];
        for text in
            ["java/lang/HeapProxy", "java/lang/Object", "id", "()V", "RuntimeVisibleAnnotations", "LDontInline;"]
        {
            out.push(1);
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&[7, 0, 1, 7, 0, 2]);
        // Access, this, super; no interfaces, no fields.
        out.extend_from_slice(&[0, 1, 0, 7, 0, 8, 0, 0, 0, 0]);
        // One native method; no attributes of the class.
        out.extend_from_slice(&[0, 1, 1, 8, 0, 3, 0, 4, 0, annotations.is_some().into()]);
        if let Some(annotations) = annotations {
            write_attribute(&mut out, 5, annotations);
        }
        out.extend_from_slice(&[0, 0]);
        out
    }

    /// The annotations of the method, none of which has elements.
    fn annotations(proxy: &[u8]) -> Vec<String> {
        let bytes = adapt(proxy).unwrap();
        let class = ClassFile::read(&bytes).unwrap();
        let all = class.methods[0].attributes.iter().filter(|attribute| attribute.name == ANNOTATIONS);
        let [attribute] = all.collect::<Vec<_>>()[..] else { panic!("one attribute, or the JVM refuses the class") };
        let (count, annotations) = attribute.info.split_first_chunk::<2>().unwrap();
        assert_eq!(annotations.len(), 4 * usize::from(u16::from_be_bytes(*count)));
        let types = annotations.chunks(4).map(|one| u16::from_be_bytes([one[0], one[1]]));
        types.map(|index| to_string(class.pool.utf8(index).unwrap())).collect()
    }

    #[test]
    fn methods_are_hidden() {
        let hidden = ["Ljava/lang/invoke/LambdaForm$Hidden;", "Ljdk/internal/vm/annotation/Hidden;"];
        assert_eq!(annotations(&proxy(None)), hidden);
        let more = annotations(&proxy(Some(&[0, 1, 0, 6, 0, 0])));
        assert_eq!(more, [&hidden[..], &["LDontInline;"]].concat());
    }

    #[test]
    fn what_is_no_class_is_an_error() {
        assert!(adapt(b"no class").is_err());
    }
}
