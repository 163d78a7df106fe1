//! A summary with shorter lists: what is kept is long, what is shown is what was asked for.

use super::Summary;
use super::lines::cut_packages;

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
        cut_packages(&mut self.packages, top);
        if let Some(contention) = &mut self.contention {
            contention.cut(top);
        }
        if let Some(survival) = &mut self.survival {
            survival.cut(top);
        }
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.classes.truncate(top);
            lifetimes.sites.truncate(top);
        }
        self
    }
}
