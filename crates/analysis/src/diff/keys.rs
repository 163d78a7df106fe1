//! Names that are the same in two runs although the VM numbers what it makes at run time.

use rustc_hash::FxHashMap;

/// Removes what differs from run to run, or changes when code is moved: numbers of lambdas, proxies and accessors, and
/// addresses of hidden classes.
pub fn stable(name: &str) -> String {
    let mut text = without_address(name);
    for marker in [
        "$$Lambda",
        "$Proxy",
        "GeneratedMethodAccessor",
        "GeneratedConstructorAccessor",
        "GeneratedSerializationConstructorAccessor",
    ] {
        text = without_number(&text, marker);
    }
    without_lambda_number(&text)
}

/// `LambdaForm$MH/0x00007f`, `Main$$Lambda.0x7f` without the suffix of a hidden class.
fn without_address(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("0x") {
        let before = &rest[..at];
        let digits = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - at - 2);
        match before.strip_suffix(['/', '.', '+']) {
            Some(before) if digits > 0 => text += before,
            _ => text += &rest[..at + 2 + digits],
        }
        rest = &rest[at + 2 + digits..];
    }
    text + rest
}

/// `Main$$Lambda$14` as `Main$$Lambda`.
fn without_number(name: &str, marker: &str) -> String {
    let Some(at) = name.find(marker) else { return name.to_owned() };
    let end = at + marker.len();
    let rest = &name[end..];
    let number = rest.strip_prefix('$').unwrap_or(rest);
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == number.len() { name.to_owned() } else { format!("{}{after}", &name[..end]) }
}

/// `Main.lambda$run$3` as `Main.lambda$run`: javac numbers them in the order of the source.
fn without_lambda_number(name: &str) -> String {
    let Some(at) = name.find(".lambda$") else { return name.to_owned() };
    match name.rsplit_once('$') {
        Some((before, number))
            if before.len() > at + ".lambda".len()
                && !number.is_empty()
                && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            before.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Names and calling contexts of several runs, by numbers that all of them share.
#[derive(Debug, Default)]
pub struct Keys {
    names: FxHashMap<String, u32>,
    texts: Vec<String>,
    contexts: FxHashMap<(u32, u32), u32>,
    /// Caller and method; of the n-th + 1.
    chains: Vec<(u32, u32)>,
}

impl Keys {
    /// The number of a name as the VM gave it.
    pub fn name(&mut self, name: &str) -> u32 {
        self.stable_name(stable(name))
    }

    /// The number of a name that is stable.
    pub fn stable_name(&mut self, name: String) -> u32 {
        let texts = &mut self.texts;
        *self.names.entry(name).or_insert_with_key(|name| {
            texts.push(name.clone());
            texts.len() as u32 - 1
        })
    }

    /// The name with this number.
    pub fn text(&self, name: u32) -> &str {
        &self.texts[name as usize]
    }

    /// All names, by number.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// The number that a name has, if it came up.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The context in which `caller` (0: the empty stack) has called a method.
    pub fn call(&mut self, caller: u32, method: u32) -> u32 {
        let chains = &mut self.chains;
        *self.contexts.entry((caller, method)).or_insert_with(|| {
            chains.push((caller, method));
            chains.len() as u32
        })
    }

    /// Caller and method of each context but the empty stack; callers are before those that they call.
    pub fn chains(&self) -> &[(u32, u32)] {
        &self.chains
    }

    /// The methods of a context, innermost first.
    pub fn methods(&self, mut context: u32) -> Vec<&str> {
        let mut methods = Vec::new();
        while context > 0 {
            let (caller, method) = self.chains[context as usize - 1];
            methods.push(self.text(method));
            context = caller;
        }
        methods
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_vm_numbers_has_no_number() {
        for (name, expected) in [
            ("shop.Main$$Lambda$14/0x0000000800c03000", "shop.Main$$Lambda"),
            ("shop.Main$$Lambda/0x00007f12", "shop.Main$$Lambda"),
            ("shop.Main$$Lambda$14.0x7f", "shop.Main$$Lambda"),
            ("java.lang.invoke.LambdaForm$MH.0x0000000800c03000", "java.lang.invoke.LambdaForm$MH"),
            ("java.lang.invoke.LambdaForm$DMH/0x00000008[]", "java.lang.invoke.LambdaForm$DMH[]"),
            ("jdk.proxy2.$Proxy14.hashCode", "jdk.proxy2.$Proxy.hashCode"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor7.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("shop.Main.lambda$run$3", "shop.Main.lambda$run"),
            ("shop.Main.lambda$3", "shop.Main.lambda$3"),
            ("shop.Main$1", "shop.Main$1"),
            ("shop.Main.run0x", "shop.Main.run0x"),
            ("shop.Main0xab.run", "shop.Main0xab.run"),
        ] {
            assert_eq!(stable(name), expected, "{name}");
        }
    }

    #[test]
    fn contexts_are_shared_between_runs() {
        let mut keys = Keys::default();
        let (main, run) = (keys.name("A.main"), keys.name("A.lambda$run$1"));
        let at = keys.call(0, main);
        let context = keys.call(at, run);
        assert_eq!(keys.methods(context), ["A.lambda$run", "A.main"]);
        let other = keys.name("A.lambda$run$2");
        assert_eq!(keys.call(at, other), context);
    }
}
