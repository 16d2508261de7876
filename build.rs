//! Tells cargo that the emails and migrations, which are compiled in, are sources too.

fn main() {
    println!("cargo::rerun-if-changed=emails");
    println!("cargo::rerun-if-changed=migrations");
}
