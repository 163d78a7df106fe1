//! The options of a traced run.

use et_runtime::options::{OPTIONS, PROPERTY_PREFIX};

use crate::markdown;

/// The table of options.
pub(crate) fn table() -> String {
    let rows = OPTIONS.iter().map(|option| {
        let default = option.default.map(|value| format!("`{value}`")).unwrap_or_default();
        vec![format!("`-D{PROPERTY_PREFIX}{}={}`", option.name, option.value), option.meaning.to_owned(), default]
    });
    markdown::table(&["option", "meaning", "default"], rows)
}
