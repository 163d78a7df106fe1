//! What readers made by others say of a class.
//!
//! `cafebabe` reads everything down to annotations. It refuses a few things that the JVM takes; those are known, and
//! then `classfile-parser` is asked instead.

/// Who has read a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opinion {
    /// Nobody, because there were faults already.
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
    // They are libraries that nobody has fuzzed for us; a panic of theirs is an opinion too.
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
