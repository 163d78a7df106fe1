//! `cargo run -p et-fuzz-targets --example seeds -- FOLDER [CLASS…]`: writes the seeds of each target to
//! FOLDER/TARGET (those of `trace` are of all that take traces); the given class files become seeds of the class reader and the rewriter.
//! Prints a line for each target, which `cargo xtask fuzz` reads: its name, that of its seeds, the longest input, whether comparisons are traced.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let folder = arguments.next().ok_or_else(|| io::Error::other("give the folder to write to"))?;
    let more: Vec<_> = arguments.collect();
    for target in et_fuzz_targets::ALL {
        println!("{} {} {} {}", target.name, target.inputs, target.longest, target.compares);
        let folder = Path::new(&folder).join(target.inputs);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in et_fuzz_targets::seeds::of(target.inputs) {
            fs::write(folder.join(name), bytes)?;
        }
        for path in &more {
            let mut bytes = fs::read(path)?;
            match target.inputs {
                "class" => {}
                "rewriter" => bytes.insert(0, 0x1f),
                _ => continue,
            }
            let name = Path::new(path).file_name().unwrap_or_default();
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
