"""Tables: frames of any library, typed columns, and what files say about them."""
