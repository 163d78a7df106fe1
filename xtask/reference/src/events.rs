//! The table of extended events in `docs/inside/events.md`.

use et_format::event::{Content, Field, SHAPES, Shape};

use crate::markdown;

/// One row per kind.
pub(crate) fn table() -> String {
    let mut shapes: Vec<&Shape> = SHAPES.iter().collect();
    shapes.sort_by_key(|shape| shape.kind);
    let rows = shapes.into_iter().map(|shape| {
        let words: Vec<String> = shape.fields.iter().map(word).collect();
        let payload = shape.payload.iter().map(|part| {
            let bits = match (part.from, part.count) {
                (from, 1) => format!("bit {from}"),
                (from, count) => format!("bits {from} to {}", from + count - 1),
            };
            format!("{bits} `{}`: {}", part.name, sentence(part.note))
        });
        let payload: Vec<String> = payload.collect();
        let name = format!("`{}`", shape.name);
        vec![shape.kind.to_string(), name, words.join(", "), payload.join(" "), sentence(shape.note)]
    });
    markdown::table(&["kind", "name", "words after the first", "payload (0 if empty)", "meaning"], rows)
}

fn word(field: &Field) -> String {
    let content = match field.content {
        Content::StaticId => "static id",
        Content::Object => "object",
        Content::Number => "number",
    };
    match sentence(field.note).trim_end_matches('.') {
        "" => format!("`{}` ({content})", field.name),
        note => format!("`{}` ({content}; {note})", field.name),
    }
}

/// Formats a doc comment for a table.
fn sentence(note: &str) -> String {
    note.trim().to_owned()
}
