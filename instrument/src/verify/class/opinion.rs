//! Results of third-party class file readers.
//!
//! `cafebabe` parses everything down to annotations. It rejects a few things that the JVM accepts; in these known
//! cases, `classfile-parser` is used instead.

/// Which reader has accepted or rejected a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opinion {
    /// None, because problems had already been found.
    #[default]
    NotAsked,
    /// `cafebabe`, and found nothing.
    Second,
    /// `cafebabe` refuses it for a reason that is known to be none; `classfile-parser` takes it.
    Third,
    /// Neither reads it, for reasons that are known to be none.
    Neither,
}

/// Refusals of legal classes: a part of the message, and why the class is legal.
const TOO_STRICT: &[(&str, &str)] =
    &[("bootstrap", "a dynamic constant may be the argument of a bootstrap method (§4.7.23)")];

/// Asks, in this order. `bytes` have passed the checks here, so sizes in it are true.
pub(super) fn ask(bytes: &[u8]) -> Result<Opinion, String> {
    // These libraries are not fuzzed; a panic counts as a rejection.
    let second = std::panic::catch_unwind(|| cafebabe::parse_class(bytes).map(drop).map_err(|error| error.to_string()));
    let refusal = match second {
        Ok(Ok(())) => return Ok(Opinion::Second),
        Ok(Err(refusal)) => refusal,
        Err(_) => return Err("cafebabe fails on it".into()),
    };
    if !TOO_STRICT.iter().any(|(part, _)| refusal.contains(part)) {
        return Err(format!("cafebabe refuses it: {refusal}"));
    }
    let third = std::panic::catch_unwind(|| matches!(classfile_parser::class_parser(bytes), Ok(([], _))));
    Ok(if matches!(third, Ok(true)) { Opinion::Third } else { Opinion::Neither })
}
