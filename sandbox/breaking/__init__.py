"""*Break it yourself*: a page of the demonstration on which a visitor kills its parts and watches what must be true stay true."""
