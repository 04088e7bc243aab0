//! Atomic variables.

pub use std::sync::atomic::Ordering;

use super::faults;

/// An atomic variable with the operations that the engine uses.
macro_rules! watched {
    ($($name:ident $value:ty),*) => {$(
        /// loom's, of this name.
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl Default for $name {
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }

        impl $name {
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(faults::order(order))
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let order = faults::order(order);
                if faults::stores() {
                    self.0.store(value, order);
                }
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, faults::order(order))
            }
        }
    )*};
}

watched!(AtomicBool bool, AtomicU32 u32, AtomicU64 u64, AtomicUsize usize);

/// Sums of those that count.
macro_rules! counts {
    ($($name:ident $value:ty),*) => {$(
        impl $name {
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, faults::order(order))
            }

            #[track_caller]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, faults::order(order))
            }
        }
    )*};
}

counts!(AtomicU32 u32, AtomicUsize usize);
