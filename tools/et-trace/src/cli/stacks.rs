//! `--fold` and `--hide`: how stacks are shown.

use clap::Args;
use et_analysis::ShownStacks;
use et_reader::population::Population;
use et_reader::source::Source;

/// How stacks are shown.
#[derive(Debug, Args)]
pub(super) struct StacksArgs {
    /// Fold recursion: a method is on a stack once, where it was called first
    #[arg(long)]
    fold: bool,
    /// Hide frames of methods with such names, such as 'java.util.*'; * is any text. Sites stay: the method that allocates is always shown
    #[arg(long, value_delimiter = ',', value_name = "PATTERN,…")]
    hide: Vec<String>,
}

impl StacksArgs {
    pub(super) fn shown(&self) -> ShownStacks {
        ShownStacks { fold: self.fold, hide: self.hide.clone() }
    }
}

/// The population with stacks as they are to be shown.
pub(super) fn show(stacks: &ShownStacks, source: &Source, population: Population) -> Population {
    let naming = source.naming();
    stacks.of(population, |method| naming.method(method))
}
