//! A summary with shorter lists: what is kept is long, what is shown is what was asked for.

use super::Summary;

impl Summary {
    /// Cuts all lists to `top` entries, packages to as many of each origin, as [`summarize`](super::summarize) does.
    #[must_use]
    pub fn cut(mut self, top: usize) -> Self {
        self.classes.truncate(top);
        self.sites.truncate(top);
        self.grew.truncate(top);
        self.held_by_running_methods.truncate(top);
        self.shortfalls.truncate(top);
        self.not_instrumented.top.truncate(top);
        let mut of_origin = (None, 0);
        self.packages.retain(|line| {
            if of_origin.0 != Some(line.origin) {
                of_origin = (Some(line.origin), 0);
            }
            of_origin.1 += 1;
            of_origin.1 <= top
        });
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.classes.truncate(top);
            lifetimes.sites.truncate(top);
        }
        self
    }
}
