//! Numbers of inserted hooks.

macro_rules! counts {
    ($($field:ident $name:literal,)*) => {
        /// Number of inserted hooks of each kind.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct HookCounts {
            $(pub $field: u64,)*
        }

        impl HookCounts {
            /// Each kind's display name with its number.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)*].into_iter()
            }
        }

        impl std::ops::AddAssign for HookCounts {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counts! {
    entries "entry",
    exits "exit",
    leaves "entry and exit",
    exit_throws "exceptional exit",
    throws "throw",
    handlers "handler",
    sites "new site",
    call_sites "call site",
    objects "object",
    arrays "array",
    field_updates "field update",
    static_updates "static update",
    array_updates "array update",
    constants "string constant",
    calls "call",
    witnesses "witness",
}

impl HookCounts {
    pub fn total(&self) -> u64 {
        self.named().map(|(_, count)| count).sum()
    }
}
