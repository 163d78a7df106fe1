//! `et-instrument run`: programs must do the same with it as without it, and leave a trace.
//!
//! On one JDK, except for features that only a newer one has.

mod advice;
mod archives;
mod bench;
mod containers;
mod java;
mod options;
mod process;
mod programs;
mod shared;
mod stacks;
mod ways;

use std::process::ExitCode;

use bench::Bench;
use et_tests::lab;
use xtask::jdks::Jdk;

const FEATURE: u32 = 17;

type Case = fn(&Bench) -> anyhow::Result<()>;

fn main() -> ExitCode {
    let cases: Vec<(&str, Case)> = [
        programs::CASES,
        options::CASES,
        process::CASES,
        containers::CASES,
        shared::CASES,
        ways::CASES,
        archives::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect();
    let trials = cases.into_iter().map(|(name, case)| {
        let obstacle = |_: &lab::Lab, jdk: &Jdk| programs::obstacle(name, jdk).or_else(|| containers::obstacle(name));
        lab::on_jdk_unless(FEATURE, name, obstacle, move |lab, jdk| case(&Bench::new(lab, jdk, name)?))
    });
    let newest = archives::FOR_25.iter().map(|(name, case)| {
        lab::on_jdk_unless(25, name, |_, _| None, move |lab, jdk| case(&Bench::new(lab, jdk, name)?))
    });
    let on = |features: [u32; 2], cases: &'static [(&'static str, Case)], obstacle: fn() -> Option<String>| {
        features.into_iter().flat_map(move |feature| {
            let trial = move |&(name, case): &(&'static str, Case)| {
                let obstacle = move |_: &lab::Lab, _: &Jdk| obstacle();
                lab::on_jdk_unless(feature, name, obstacle, move |lab, jdk| case(&Bench::new(lab, jdk, name)?))
            };
            cases.iter().map(trial)
        })
    };
    let of_stacks = on(stacks::FEATURES, stacks::CASES, || None);
    let of_advice = on(advice::FEATURES, advice::CASES, advice::obstacle);
    lab::run(trials.chain(newest).chain(of_advice).chain(of_stacks).collect()).exit_code()
}
