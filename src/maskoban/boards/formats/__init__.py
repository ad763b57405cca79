"""One file for each way people keep boards; ``maskoban.boards.files`` chooses among them."""
